"""What stands in the storage: read when somebody asks, and not again for a while."""

import logging
import threading
import time

from identity.log_format import OnceAMinute
from identity.operations import OpenServices
from identity.plugins.metrics.exposition import Gauges
from identity.plugins.metrics.families import (
    ANSWER,
    BACKGROUND_AGE,
    EXPIRING,
    KEPT,
    KEY_AGE,
    KEY_DUE,
    OUTBOX_AGE,
    OUTBOX_FAILING,
    OUTBOX_GIVEN_UP,
    OVERDUE,
    UP,
    Family,
)
from identity.services.bundle import Services
from identity.storage.errors import StorageError

log = logging.getLogger(__name__)
log.addFilter(OnceAMinute())

#: Seconds for which what was read is told again.
_FRESH = 15.0


class Stored:
    """The figures of the storage; without an answer of it, that there is none."""

    def __init__(self, reading: OpenServices) -> None:
        self._reading = reading
        self._lock = threading.Lock()
        self._found: Gauges = {}
        self._read_at = float("-inf")

    def gauges(self) -> Gauges:
        """What there is, a quarter of a minute old at most; one look at a time."""
        with self._lock:
            if time.monotonic() - self._read_at >= _FRESH:
                self._found = self._read()
                self._read_at = time.monotonic()
            return self._found

    def _read(self) -> Gauges:
        began = time.perf_counter()
        try:
            with self._reading() as services:
                found = _figures(services)
        except StorageError as problem:
            log.warning("the storage cannot be measured: %s", problem)
            return {(UP, ()): 0}
        return {(UP, ()): 1, (ANSWER, ()): time.perf_counter() - began, **found}


def _figures(services: Services) -> dict[tuple[Family, tuple[str, ...]], float]:
    figures = services.measuring.figures()
    found: dict[tuple[Family, tuple[str, ...]], float] = {
        (KEY_DUE, ()): figures.signing_key_due.total_seconds(),
        **{(KEPT, (kind,)): count for kind, count in figures.kept.items()},
        **{(OVERDUE, (kind,)): count for kind, count in figures.overdue.items()},
        **{(BACKGROUND_AGE, (work,)): age.total_seconds() for work, age in services.measuring.waiting().items()},
        **{(EXPIRING, (kind,)): count for kind, count in figures.expiring.items()},
    }
    if figures.signing_key_age is not None:
        found[KEY_AGE, ()] = figures.signing_key_age.total_seconds()
    for way, backlog in figures.outbox.items():
        since = backlog.since
        found[OUTBOX_FAILING, (way,)] = backlog.failing
        found[OUTBOX_GIVEN_UP, (way,)] = backlog.given_up
        found[OUTBOX_AGE, (way,)] = 0 if since is None else (services.now - since).total_seconds()
    return found
