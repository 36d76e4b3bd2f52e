"""Counters of one process, cheap enough for the hot path."""

import threading
from bisect import bisect_left
from collections.abc import Callable
from itertools import product

from identity.api.plugins import InstrumentationObserver, Measurement, Outcome
from identity.api.services import AuditEvent
from identity.plugins.metrics.families import (
    AUDIT_EVENTS,
    COUNTED_FAMILIES,
    GRANTS,
    LAGGING_READS,
    PASSWORD_SECONDS,
    PURGE_SECONDS,
    REQUEST_SECONDS,
    REQUESTS,
    SIGN_INS,
    SIGNATURE_SECONDS,
    SIGNER_CALLS,
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

_SQL_VERBS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "COMMIT", "BEGIN", "SAVEPOINT", "RELEASE"})
_MAX_CACHED_STATEMENTS = 2000


class ProcessCounters(InstrumentationObserver):
    """Counters of this process. ``on_change`` is called when there are changes since the last ``take``."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self.on_change = on_change
        #: Names of the sign-in methods and of the grant types.
        self.methods: frozenset[str] = frozenset()
        self.grant_types: tuple[str, ...] = ()
        self._samples: dict[MetricFamily, Samples] = {family: {} for family in COUNTED_FAMILIES}
        self._lock = threading.Lock()
        self._statement_verbs: dict[str, tuple[str, ...]] = {}
        self._is_change_notified = False
        self._requests_in_progress = 0

    def increment(self, family: MetricFamily, *labels: str) -> None:
        """Add one."""
        with self._lock:
            samples = self._samples[family]
            cell = samples.get(labels)
            if cell is None:
                cell = samples[labels] = [0]
            cell[0] += 1
        self._notify_change()

    def observe(self, family: MetricFamily, seconds: float, *labels: str) -> None:
        """Add one observation of this duration."""
        with self._lock:
            samples = self._samples[family]
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
        """Record the outcome of a sign-in or of a call of a signer, the server that an endpoint has read from, or a
        request that the web server refused.
        """
        if kind == Measurement.SIGN_IN:
            method = name if name in self.methods else OTHER_LABEL
            self.increment(SIGN_INS, method, outcome if outcome in tuple(Outcome) else OTHER_LABEL)
        elif kind == Measurement.LAGGING_ENDPOINT:
            self.increment(LAGGING_READS, name, outcome)
        elif kind == Measurement.SIGNER:
            self.increment(SIGNER_CALLS, name, outcome)
        elif kind == Measurement.SERVER_REFUSAL:
            self.increment(REQUESTS, name, outcome)

    def record_lag(self, kind: str, seconds: float) -> None:
        """Record the lag of a read from a standby."""
        if kind == Measurement.STANDBY_READ:
            self.observe(STANDBY_AGE, seconds)

    def take(self) -> dict[MetricFamily, Samples]:
        """The counts since the last call."""
        self._is_change_notified = False
        with self._lock:
            counted, self._samples = self._samples, {family: {} for family in COUNTED_FAMILIES}
        return counted

    def reset(self) -> None:
        """Start at zero, for all label values known in advance: a counter that starts at one shows no increase."""
        self.take()
        known = {
            GRANTS: product(self.grant_types, (GRANT_ISSUED, GRANT_FAILED)),
            SIGN_INS: product(sorted(self.methods), Outcome),
            AUDIT_EVENTS: product(AuditEvent.NAMES),
        }
        for family, label_values in known.items():
            self._samples[family].update({labels: [0] for labels in label_values})

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
