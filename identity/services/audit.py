"""The audit trail: changes are recorded with the change, refusals survive the abort."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from identity.crypto.secrets import new_id
from identity.domain.audit import EVENTS, OF_USERS, Actor, ActorKind, AuditEvent, AuditFilter, Result
from identity.domain.entity import members
from identity.domain.errors import NotFound
from identity.domain.expirations import NEVER, NEVER_WORD
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, Page, PageRequest

_MINUTE = timedelta(minutes=1)
#: How many refused attempts of strangers are written in a minute for one thing, or for all that is unknown.
MOST_OF_STRANGERS = 60


class Recorder:
    """Collects what happens in one request: ``recorded`` is written already, ``refused`` waits for its own
    transaction after the abort."""

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
        self.recorded: list[AuditEvent] = []
        self.refused: list[AuditEvent] = []

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
    def acting(self, user_id: str, *, client_id: str | None = None, session_id: str | None = None) -> Iterator[None]:
        """Within, the request acts as this person, who has proved it by a password, a session or a link.

        Where the request has proved already who acts, it is still them.
        """
        before = self.actor
        if before.kind is ActorKind.ANONYMOUS:
            self.actor = before.proven(ActorKind.USER, user_id, client_id=client_id, session_id=session_id)
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
        self.write(self._event(event, kind, id, organization_id, detail or {}, actor=actor, user_id=user_id))

    def record_many(
        self, event: str, kind: str, organization_id: str, things: Iterable[tuple[str, Mapping[str, object]]]
    ) -> None:
        """Write the same event of many things, by their ids, each with its detail."""
        events = [self._event(event, kind, id_, organization_id, detail) for id_, detail in things]
        self._storage.audit.append_many(events)
        for one in events:
            self._written(one)

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
        return self.write(self._event(event, kind, id, organization_id, detail or {}, once=once))

    def refuse(
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
        self.refused.append(
            self._event(event, kind, id, organization_id, detail or {}, result=Result.REFUSED, reason=reason, once=once)
        )

    def write_refused(self, event: AuditEvent) -> bool:
        """Write a refused attempt; False if it is there already.

        Of what nobody known has tried, a few a minute are written for each known thing, and as many for all that is
        unknown: a stranger can make attempts without end, and must neither fill the trail nor hide what others do.
        """
        if event.actor.id is None:
            key = f"refused:{event.object_id or ''}"
            if self._storage.attempts.count(key, at=self._now, span=_MINUTE, most=MOST_OF_STRANGERS) is not None:
                return False
        return self.write(event)

    def write(self, event: AuditEvent) -> bool:
        """Write an event as it is; False if its ``once`` is there already."""
        if not self._storage.audit.append(event):
            return False
        self._written(event)
        return True

    def _written(self, event: AuditEvent) -> None:
        if self._on_record is not None:
            self._on_record(event)
        if not self.recorded and self._on_first_record is not None:
            self._on_first_record()
        self.recorded.append(event)

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
        if kind in OF_USERS and user_id is None:
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

    def page(self, filter: AuditFilter, request: PageRequest = FIRST_PAGE) -> Page[AuditEvent]:  # noqa: A002
        """Events that fit the filter, newest first."""
        return self._storage.audit.page(request, filter)

    def get(self, event_id: str) -> AuditEvent:
        """The event. Raises NotFound."""
        event = self._storage.audit.find(event_id)
        if event is None:
            raise NotFound("audit event", event_id)
        return event


def representation(event: AuditEvent) -> dict[str, object]:
    """The event in plain values, as programs get it."""
    actor = event.actor
    return {
        "id": event.id,
        "at": json_value(event.at),
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


def differences(before: Any, after: Any) -> dict[str, dict[str, object]]:
    """What a change did, field by field, as plain values: {"name": {"before": …, "after": …}}."""
    return {
        name: {"before": json_value(getattr(before, name)), "after": json_value(getattr(after, name))}
        for name, one in members(type(after)).items()
        if one.told and getattr(before, name) != getattr(after, name)
    }


def facts(value: Any) -> dict[str, object]:
    """What was created, field by field, as plain values."""
    return {name: json_value(getattr(value, name)) for name, one in members(type(value)).items() if one.told}


def json_value(value: Any) -> object:
    """The value as JSON has it: moments as RFC 3339 texts (or "never"), spans in whole seconds, sets in order."""
    if isinstance(value, Enum):
        return value.value
    if value == NEVER:
        return NEVER_WORD
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, frozenset):
        return sorted(json_value(one) for one in value)  # type: ignore[type-var]
    if isinstance(value, tuple):
        return [json_value(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return facts(value)
    return value
