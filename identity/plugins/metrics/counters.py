"""Counters of one process, cheap enough for the hot path, and their sum over processes."""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Any

from identity.api.plugins import InstrumentationObserver, Measurement, Outcome
from identity.api.services import AuditEvent
from identity.plugins.metrics.families import (
    AUDIT_EVENTS,
    COUNTER_FAMILIES,
    GRANTS,
    LAGGING_READS,
    PASSWORD_SECONDS,
    PURGE_SECONDS,
    REQUEST_SECONDS,
    REQUESTS,
    SIGN_INS,
    SIGNATURE_SECONDS,
    STANDBY_AGE,
    STATEMENT_SECONDS,
    MetricFamily,
)

#: Outcomes of a token request besides the error codes of the protocol; failed means an internal error.
GRANT_ISSUED, GRANT_FAILED = "issued", "failed"
#: Label for unknown values: labels come from closed sets, never from a request.
OTHER_LABEL = "other"

#: Labels of a sample, and its values: a number, or for a histogram the sum and each bucket's own count.
Samples = dict[tuple[str, ...], list[float]]

_FAMILIES_BY_NAME = {family.name: family for family in COUNTER_FAMILIES}
_SQL_VERBS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "COMMIT", "BEGIN", "SAVEPOINT", "RELEASE"})
_MAX_CACHED_STATEMENTS = 2000


class ProcessCounters(InstrumentationObserver):
    """Counters of this process. ``on_change`` is called when there are changes since the last ``snapshot``."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self.on_change = on_change
        #: Names of the sign-in methods.
        self.methods: frozenset[str] = frozenset()
        self._samples: dict[str, Samples] = {family.name: {} for family in COUNTER_FAMILIES}
        self._lock = threading.Lock()
        self._statement_verbs: dict[str, tuple[str, ...]] = {}
        self._is_change_notified = False
        self._requests_in_progress = 0

    def increment(self, family: MetricFamily, *labels: str) -> None:
        """Add one."""
        samples = self._samples[family.name]
        with self._lock:
            cell = samples.get(labels)
            if cell is None:
                cell = samples[labels] = [0]
            cell[0] += 1
        self._notify_change()

    def observe(self, family: MetricFamily, seconds: float, *labels: str) -> None:
        """Add one observation of this duration."""
        samples = self._samples[family.name]
        with self._lock:
            cell = samples.get(labels)
            if cell is None:
                cell = samples[labels] = [0.0] * (len(family.buckets) + 2)
            cell[0] += seconds
            cell[bisect_left(family.buckets, seconds) + 1] += 1
        self._notify_change()

    def request_started(self) -> None:
        """A request has started. Others are notified: it may count nothing for long."""
        with self._lock:
            self._requests_in_progress += 1
        self._notify_change()

    def request_ended(self) -> None:
        with self._lock:
            self._requests_in_progress -= 1

    def is_busy(self) -> bool:
        """True while requests are being handled."""
        return self._requests_in_progress > 0

    def count_request(self, endpoint: str, status: int, seconds: float) -> None:
        self.increment(REQUESTS, endpoint, str(status))
        self.observe(REQUEST_SECONDS, seconds, endpoint)

    def count_grant(self, grant_type: str, outcome: str) -> None:
        self.increment(GRANTS, grant_type, outcome)

    def record_duration(self, kind: str, name: str, seconds: float) -> None:
        """Record the duration of a hash, a signature, a statement or a batch of a purge."""
        if kind == Measurement.STATEMENT:
            self.observe(STATEMENT_SECONDS, seconds, *self._statement_verb(name))
        elif kind == Measurement.SIGNATURE:
            self.observe(SIGNATURE_SECONDS, seconds, name)
        elif kind == Measurement.HASH:
            self.observe(PASSWORD_SECONDS, seconds)
        elif kind == Measurement.PURGE:
            self.observe(PURGE_SECONDS, seconds, name)

    def record_outcome(self, kind: str, name: str, outcome: str) -> None:
        """Record the outcome of a sign-in, the server that an endpoint has read from, or a request that the web server
        refused.
        """
        if kind == Measurement.SIGN_IN:
            method = name if name in self.methods else OTHER_LABEL
            self.increment(SIGN_INS, method, outcome if outcome in tuple(Outcome) else OTHER_LABEL)
        elif kind == Measurement.LAGGING_ENDPOINT:
            self.increment(LAGGING_READS, name, outcome)
        elif kind == Measurement.SERVER_REFUSAL:
            self.increment(REQUESTS, name, outcome)

    def record_lag(self, kind: str, seconds: float) -> None:
        """Record the lag of a read from a standby."""
        if kind == Measurement.STANDBY_READ:
            self.observe(STANDBY_AGE, seconds)

    def snapshot(self) -> dict[str, Samples]:
        """The current counters."""
        self._is_change_notified = False
        with self._lock:
            return {
                name: {labels: list(cell) for labels, cell in samples.items()}
                for name, samples in self._samples.items()
            }

    def reset(self) -> None:
        """Reset to zero: otherwise every forked process would report what was counted before."""
        with self._lock:
            for samples in self._samples.values():
                samples.clear()

    def _statement_verb(self, statement: str) -> tuple[str, ...]:
        known = self._statement_verbs.get(statement)
        if known is None:
            verb = statement.split(None, 1)[0].upper() if statement.strip() else ""
            known = (verb if verb in _SQL_VERBS else OTHER_LABEL,)
            if len(self._statement_verbs) < _MAX_CACHED_STATEMENTS:
                self._statement_verbs[statement] = known
        return known

    def _notify_change(self) -> None:
        if not self._is_change_notified:
            self._is_change_notified = True
            self.on_change()


def initial_samples(grants: Iterable[str], methods: Iterable[str]) -> dict[str, Samples]:
    """Zero for all label values known in advance: a counter that starts at one shows no increase."""
    return {
        GRANTS.name: {(name, outcome): [0] for name in grants for outcome in (GRANT_ISSUED, GRANT_FAILED)},
        SIGN_INS.name: {(name, outcome): [0] for name in methods for outcome in tuple(Outcome)},
        AUDIT_EVENTS.name: {(name,): [0] for name in AuditEvent.NAMES},
    }


def sum_samples(counted: Sequence[Mapping[str, Samples]]) -> dict[str, Samples]:
    """The sum over several processes."""
    together: dict[str, Samples] = {family.name: {} for family in COUNTER_FAMILIES}
    for item in counted:
        for name, samples in item.items():
            join = max if _FAMILIES_BY_NAME[name].is_shared else add
            for labels, cell in samples.items():
                before = together[name].get(labels)
                cells = cell if before is None else [join(a, b) for a, b in zip(before, cell, strict=True)]
                together[name][labels] = cells
    return together


def serialize_samples(counted: Mapping[str, Samples]) -> dict[str, Any]:
    """Samples as JSON values."""
    return {name: [[list(labels), cell] for labels, cell in samples.items()] for name, samples in counted.items()}


def deserialize_samples(members: Mapping[str, Any]) -> dict[str, Samples]:
    """Inverse of ``serialize_samples``; metrics that another version counts differently are left out."""
    return {
        name: dict(_matching_rows(_FAMILIES_BY_NAME[name], rows))
        for name, rows in members.items()
        if name in _FAMILIES_BY_NAME
    }


def _matching_rows(family: MetricFamily, rows: Sequence[Any]) -> Iterator[tuple[tuple[str, ...], list[float]]]:
    size = len(family.buckets) + 2 if family.buckets else 1
    for labels, cell in rows:
        # Shared metrics have the worker generation as additional label.
        if len(cell) == size and len(labels) == len(family.labels) + family.is_shared:
            yield tuple(labels), cell
