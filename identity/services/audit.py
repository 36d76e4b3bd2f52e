"""The audit trail: changes are recorded with the change, refusals survive the abort."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from identity.crypto.secrets import new_id
from identity.domain.audit import EVENTS, USER_OWNED_KINDS, Actor, ActorKind, AuditEvent, AuditFilter, Result
from identity.domain.entity import entity_fields
from identity.domain.errors import NotFound
from identity.domain.expirations import NEVER, NEVER_TEXT
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage

_MINUTE = timedelta(minutes=1)
#: How many refused attempts of strangers are written in a minute for one thing, or for all that is unknown.
MAX_ANONYMOUS_REFUSALS = 60


class AuditRecorder:
    """Collects what happens in one request: ``recorded_events`` is written already, ``refused_events`` waits for its
    own transaction after the abort.
    """

    def __init__(
        self,
        storage: Storage,
        now: datetime,
        actor: Actor | Callable[[], Actor],
        *,
        on_first_record: Callable[[], None] | None = None,
        on_record: Callable[[AuditEvent], None] | None = None,
    ) -> None:
        self._storage = storage
        self._now = now
        self._actor = actor
        self._on_first_record = on_first_record
        self._on_record = on_record
        self.recorded_events: list[AuditEvent] = []
        self.refused_events: list[AuditEvent] = []

    @property
    def actor(self) -> Actor:
        """Who acts; where that is told by a function, it is asked once, when it is first needed."""
        if not isinstance(self._actor, Actor):
            self._actor = self._actor()
        return self._actor

    @actor.setter
    def actor(self, actor: Actor) -> None:
        self._actor = actor

    @contextmanager
    def acting_as(self, user_id: str, *, client_id: str | None = None, session_id: str | None = None) -> Iterator[None]:
        """Within, the request acts as this person, who has proved it by a password, a session or a link.

        Where the request has proved already who acts, it is still them.
        """
        before = self.actor
        if before.kind is ActorKind.ANONYMOUS:
            self.actor = before.authenticated_as(ActorKind.USER, user_id, client_id=client_id, session_id=session_id)
        try:
            yield
        finally:
            self.actor = before

    def record(
        self,
        event: str,
        *,
        kind: str,
        id: str | None,  # noqa: A002
        organization_id: str | None,
        detail: Mapping[str, object] | None = None,
        actor: Actor | None = None,
        user_id: str | None = None,
    ) -> None:
        """Write a change's event in the change's own transaction.

        ``actor`` replaces who acts; ``user_id`` is the user whose the object is, where the detail does not name them.
        """
        self.write_event(self._event(event, kind, id, organization_id, detail or {}, actor=actor, user_id=user_id))

    def record_many(
        self, event: str, kind: str, organization_id: str, details: Iterable[tuple[str, Mapping[str, object]]]
    ) -> None:
        """Write the same event of many things, by their ids, each with its detail."""
        events = [self._event(event, kind, id_, organization_id, detail) for id_, detail in details]
        self._storage.audit.append_many(events)
        for audit_event in events:
            self._written(audit_event)

    def record_once(
        self,
        once: str,
        event: str,
        *,
        kind: str,
        id: str | None,  # noqa: A002
        organization_id: str | None,
        detail: Mapping[str, object] | None = None,
    ) -> bool:
        """Write an event unless one with the same ``once`` was written before, by any node; True if it was written."""
        return self.write_event(self._event(event, kind, id, organization_id, detail or {}, once=once))

    def record_refusal(
        self,
        event: str,
        *,
        kind: str,
        id: str | None,  # noqa: A002
        reason: str,
        organization_id: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Remember a refused attempt; it is written later, at most once a minute for one party, object and reason.

        Nothing that was sent stands in ``id``, ``reason`` or ``detail`` but the id of a thing that is there, and an
        address to return to that is not registered, in its presentable form.
        """
        minute = int(self._now.timestamp()) // 60
        once = f"{event}|{self.actor.id or ''}|{kind}|{id or ''}|{reason}|{minute}"
        self.refused_events.append(
            self._event(event, kind, id, organization_id, detail or {}, result=Result.REFUSED, reason=reason, once=once)
        )

    def write_refusal(self, event: AuditEvent) -> bool:
        """Write a refused attempt; False if it is there already.

        Of what nobody known has tried, a few a minute are written for each known thing, and as many for all that is
        unknown: a stranger can make attempts without end, and must neither fill the trail nor hide what others do.
        """
        if event.actor.id is None:
            key = f"refused:{event.object_id or ''}"
            if (
                self._storage.attempts.count_use(key, used_at=self._now, window=_MINUTE, limit=MAX_ANONYMOUS_REFUSALS)
                is not None
            ):
                return False
        return self.write_event(event)

    def write_event(self, event: AuditEvent) -> bool:
        """Write an event as it is; False if its ``once`` is there already."""
        if not self._storage.audit.append(event):
            return False
        self._written(event)
        return True

    def _written(self, event: AuditEvent) -> None:
        if self._on_record is not None:
            self._on_record(event)
        if not self.recorded_events and self._on_first_record is not None:
            self._on_first_record()
        self.recorded_events.append(event)

    def _event(
        self,
        event: str,
        kind: str,
        id: str | None,  # noqa: A002
        organization_id: str | None,
        detail: Mapping[str, object],
        *,
        result: Result = Result.SUCCESS,
        reason: str | None = None,
        once: str | None = None,
        actor: Actor | None = None,
        user_id: str | None = None,
    ) -> AuditEvent:
        if event not in EVENTS:
            raise ValueError(f"{event} is not in the catalogue of audit events")
        if kind in USER_OWNED_KINDS and user_id is None:
            named = detail.get("user_id")
            user_id = named if isinstance(named, str) else None
        return AuditEvent(
            id=new_id(),
            at=self._now,
            event=event,
            actor=actor or self.actor,
            object_kind=kind,
            object_id=id,
            user_id=user_id,
            organization_id=organization_id,
            result=result,
            reason=reason,
            detail=detail,
            once=once,
        )


class AuditTrail:
    """What was recorded and refused, to be read."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def page(self, filter: AuditFilter, request: PageRequest = FIRST_PAGE) -> ResultPage[AuditEvent]:  # noqa: A002
        """Events that fit the filter, newest first."""
        return self._storage.audit.page(request, filter)

    def get(self, event_id: str) -> AuditEvent:
        """The event. Raises NotFound."""
        event = self._storage.audit.find(event_id)
        if event is None:
            raise NotFound("audit event", event_id)
        return event


def event_to_dict(event: AuditEvent) -> dict[str, object]:
    """The event in plain values, as programs get it."""
    actor = event.actor
    return {
        "id": event.id,
        "at": to_json_value(event.at),
        "event": event.event,
        "result": event.result.value,
        "reason": event.reason,
        "actor": {
            "kind": actor.kind.value,
            "id": actor.id,
            "client_id": actor.client_id,
            "session_id": actor.session_id,
            "client_address": actor.client_address,
            "request_id": actor.request_id,
        },
        "object_kind": event.object_kind,
        "object_id": event.object_id,
        "user_id": event.user_id,
        "organization_id": event.organization_id,
        "detail": dict(event.detail),
    }


def diff_fields(before: Any, after: Any) -> dict[str, dict[str, object]]:
    """What a change did, field by field, as plain values: {"name": {"before": …, "after": …}}."""
    return {
        name: {"before": to_json_value(getattr(before, name)), "after": to_json_value(getattr(after, name))}
        for name, field in entity_fields(type(after)).items()
        if field.is_audited and getattr(before, name) != getattr(after, name)
    }


def dump_fields(value: Any) -> dict[str, object]:
    """What was created, field by field, as plain values."""
    return {
        name: to_json_value(getattr(value, name))
        for name, field in entity_fields(type(value)).items()
        if field.is_audited
    }


def to_json_value(value: Any) -> object:
    """The value as JSON has it: moments as RFC 3339 texts (or "never"), spans in whole seconds, sets in order."""
    if isinstance(value, Enum):
        return value.value
    if value == NEVER:
        return NEVER_TEXT
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, frozenset):
        return sorted(to_json_value(item) for item in value)  # type: ignore[type-var]
    if isinstance(value, tuple):
        return [to_json_value(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return dump_fields(value)
    return value
