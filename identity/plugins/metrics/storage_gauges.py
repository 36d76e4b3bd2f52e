"""Gauges of the storage, read on scrape and cached."""

import logging
import threading
import time

from identity.api.plugins import RepeatedMessageFilter, ServicesFactory
from identity.api.services import Services
from identity.api.storage import StorageError
from identity.plugins.metrics.exposition import Gauges
from identity.plugins.metrics.families import (
    BACKGROUND_LAG,
    EXPIRING_KEYS,
    OUTBOX_AGE,
    OUTBOX_EXPIRED,
    OUTBOX_FAILING,
    PURGE_BACKLOG,
    SIGNING_KEY_AGE,
    SIGNING_KEY_DUE,
    STORAGE_SECONDS,
    STORAGE_UP,
    STORED_ROWS,
    MetricFamily,
)

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

#: Cache lifetime in seconds.
_CACHE_SECONDS = 15.0


class StorageGauges:
    """The storage's statistics; only its unavailability if it does not respond."""

    def __init__(self, reading: ServicesFactory) -> None:
        self._reading = reading
        self._lock = threading.Lock()
        self._cached: Gauges = {}
        self._read_at = float("-inf")

    def read(self) -> Gauges:
        """The gauges, at most 15 seconds old; one reader at a time."""
        with self._lock:
            if time.monotonic() - self._read_at >= _CACHE_SECONDS:
                self._cached = self._query()
                self._read_at = time.monotonic()
            return self._cached

    def _query(self) -> Gauges:
        began = time.perf_counter()
        try:
            with self._reading() as services:
                found = _collect_gauges(services)
        except StorageError as problem:
            log.warning("the storage cannot be measured: %s", problem)
            return {(STORAGE_UP, ()): 0}
        return {(STORAGE_UP, ()): 1, (STORAGE_SECONDS, ()): time.perf_counter() - began, **found}


def _collect_gauges(services: Services) -> dict[tuple[MetricFamily, tuple[str, ...]], float]:
    figures = services.statistics.collect()
    found: dict[tuple[MetricFamily, tuple[str, ...]], float] = {
        (SIGNING_KEY_DUE, ()): figures.signing_key_due.total_seconds(),
        **{(STORED_ROWS, (kind,)): count for kind, count in figures.row_counts.items()},
        **{(PURGE_BACKLOG, (kind,)): count for kind, count in figures.overdue_counts.items()},
        **{(BACKGROUND_LAG, (work,)): age.total_seconds() for work, age in services.statistics.backlog_ages().items()},
        **{(EXPIRING_KEYS, (kind,)): count for kind, count in figures.expiring_counts.items()},
    }
    if figures.signing_key_age is not None:
        found[SIGNING_KEY_AGE, ()] = figures.signing_key_age.total_seconds()
    for delivery, backlog in figures.outbox_backlogs.items():
        since = backlog.oldest_at
        found[OUTBOX_FAILING, (delivery,)] = backlog.failing
        found[OUTBOX_EXPIRED, (delivery,)] = backlog.abandoned
        found[OUTBOX_AGE, (delivery,)] = 0 if since is None else (services.now - since).total_seconds()
    return found
