"""What requests count and log without a statement of their own: collected in memory, written periodically."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime

from identity.domain.application_requests import MAX_LOGGED_REQUESTS, ApplicationRequest
from identity.domain.audit import AuditEvent, Result
from identity.domain.figures import WHOLE_INSTANCE, FigureKey, FigureKind, utc_day
from identity.storage.backend import Storage

#: Bounds of what is collected between two writes. Beyond them a count is only added to the instance's own, and a
#: request is not logged. Ids that no client has authenticated are few, so that invented ones do not displace others.
MAX_KEYS = 20_000
MAX_APPLICATIONS = 1000
MAX_UNVERIFIED_APPLICATIONS = 100

_FIGURES_BY_EVENT = {
    "session.started": FigureKind.SIGN_INS,
    "user.created": FigureKind.NEW_PEOPLE,
    "user.registered": FigureKind.NEW_PEOPLE,
}
#: What a person tries to sign in with; other refused authentications are of programs.
_SIGN_IN_OBJECTS = frozenset({"user", "upstream_provider"})

_Key = tuple[str, FigureKind, date, str]


class ActivityCollector:
    """One per process, for all threads. ``on_first`` is called when something was collected since the last ``drain``.
    A crash loses what was collected since then."""

    def __init__(self) -> None:
        self.on_first: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._counts: dict[_Key, int] = {}
        self._requests: dict[tuple[str, bool], deque[ApplicationRequest]] = {}
        self._unverified: dict[tuple[str, bool], deque[ApplicationRequest]] = {}
        self._is_empty = True

    def count(
        self, kind: FigureKind, organization_id: str | None, at: datetime, *, object_id: str = "", number: int = 1
    ) -> None:
        """Count for the organization, if any, and for the whole instance."""
        day = utc_day(at)
        with self._lock:
            for owner in {WHOLE_INSTANCE, organization_id or WHOLE_INSTANCE}:
                key = (owner, kind, day, object_id)
                if key not in self._counts and len(self._counts) >= MAX_KEYS:
                    if owner != WHOLE_INSTANCE:
                        continue
                    key = (owner, kind, day, "")
                self._counts[key] = self._counts.get(key, 0) + number
        self._note_first()

    def count_events(self, events: Iterable[AuditEvent]) -> None:
        """Count the committed changes that are figures."""
        for event in events:
            kind = _FIGURES_BY_EVENT.get(event.event)
            if kind is not None and event.result is Result.SUCCESS:
                self.count(kind, event.organization_id, event.at)

    def count_refusals(self, events: Iterable[AuditEvent]) -> None:
        """Count refused sign-ins of people, also those that the audit trail leaves out as repetitions."""
        for event in events:
            if event.event == AuditEvent.SIGN_IN_REFUSED and event.object_kind in _SIGN_IN_OBJECTS:
                self.count(FigureKind.REFUSED_SIGN_INS, event.organization_id, event.at)

    def log_request(self, request: ApplicationRequest, *, is_verified: bool) -> None:
        """Keep the request among the latest of its application. ``is_verified`` is False if the application was only
        named: it may not exist."""
        group, limit = (
            (self._requests, MAX_APPLICATIONS) if is_verified else (self._unverified, MAX_UNVERIFIED_APPLICATIONS)
        )
        key = (request.application_id, bool(request.error))
        with self._lock:
            latest = group.get(key)
            if latest is None:
                if len(group) >= 2 * limit:
                    return
                latest = group[key] = deque(maxlen=MAX_LOGGED_REQUESTS)
            latest.append(request)
        self._note_first()

    def drain(self) -> tuple[dict[FigureKey, int], list[ApplicationRequest]]:
        """Remove and return everything collected since the last call."""
        with self._lock:
            counts, self._counts = self._counts, {}
            logged = [*self._requests.values(), *self._unverified.values()]
            self._requests, self._unverified = {}, {}
            self._is_empty = True
        keyed = {
            FigureKey(organization_id=owner, kind=kind, day=day, object_id=object_id): number
            for (owner, kind, day, object_id), number in counts.items()
        }
        return keyed, [request for requests in logged for request in requests]

    def restore(self, counts: Mapping[FigureKey, int]) -> None:
        """Count again what could not be written."""
        with self._lock:
            for key, number in counts.items():
                known = (key.organization_id, key.kind, key.day, key.object_id)
                self._counts[known] = self._counts.get(known, 0) + number

    def _note_first(self) -> None:
        if self._is_empty:
            self._is_empty = False
            self.on_first()


def write_activity(storage: Storage, counts: Mapping[FigureKey, int], requests: Iterable[ApplicationRequest]) -> None:
    """Add the counts and log the requests."""
    if counts:
        storage.figures.add(counts)
    logged = list(requests)
    if logged:
        storage.application_requests.add(logged)
