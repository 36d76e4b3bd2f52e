"""The audit trail: changes are recorded in their own transaction, refusals survive the abort."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from identity.crypto.secrets import new_id
from identity.domain.audit import GROUP_OWNED_KINDS, USER_OWNED_KINDS, Actor, ActorKind, AuditEvent, AuditFilter, Result
from identity.domain.entity import entity_fields
from identity.domain.errors import NotFound
from identity.domain.expirations import NEVER, NEVER_TEXT
from identity.domain.sessions import Session
from identity.storage.backend import Storage
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage

_MINUTE = timedelta(minutes=1)
#: How many refusals of anonymous clients are written per minute for one object, or for all unknown ones together.
MAX_ANONYMOUS_REFUSALS = 60


@dataclass(eq=False, repr=False)
class AuditRecorder:
    """Collects the events of one request: ``recorded_events`` are written already, ``refused_events`` wait for their
    own transaction after the abort."""

    _storage: Storage
    _now: datetime
    _actor: Actor | Callable[[], Actor]
    _on_first_record: Callable[[], None]
    _on_record: Callable[[AuditEvent], None]
    recorded_events: list[AuditEvent] = field(default_factory=list, init=False)
    refused_events: list[AuditEvent] = field(default_factory=list, init=False)
    #: The person as whom the actor is signed in; each event names them, too.
    impersonated_user_id: str | None = field(default=None, init=False)

    @property
    def actor(self) -> Actor:
        """The actor. If a function finds it, it is called once, on first use."""
        if not isinstance(self._actor, Actor):
            self._actor = self._actor()
        return self._actor

    @actor.setter
    def actor(self, actor: Actor) -> None:
        self._actor = actor

    def act_as_impersonator(self, session: Session) -> None:
        """Make the manager who is signed in as the session's user the actor, and name both in each event."""
        if session.impersonator_id is None:
            raise ValueError("the session is not impersonated")
        self.actor = self.actor.authenticated_as(ActorKind.USER, session.impersonator_id, session_id=session.id)
        self.impersonated_user_id = session.user_id

    @contextmanager
    def acting_as(self, user_id: str, *, client_id: str | None = None, session_id: str | None = None) -> Iterator[None]:
        """Within the context the request acts as this user, authenticated by a password, a session or a link. An actor
        that the request has authenticated before stays."""
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
        id: str | None,
        organization_id: str | None,
        detail: Mapping[str, object] | None = None,
        actor: Actor | None = None,
        user_id: str | None = None,
        group_id: str | None = None,
        refused: str | None = None,
    ) -> None:
        """Write a change's event in the change's own transaction. ``actor`` replaces the request's actor; ``user_id``
        is the object's owner, and ``group_id`` its group, if the detail does not name them. ``refused`` is why a part
        of the change was left out."""
        result = Result.SUCCESS if refused is None else Result.REFUSED
        self.write_event(
            self._event(
                *(event, kind, id, organization_id, detail or {}),
                result=result,
                reason=refused,
                actor=actor,
                user_id=user_id,
                group_id=group_id,
            )
        )

    def record_many(
        self, event: str, kind: str, organization_id: str, details: Iterable[tuple[str, Mapping[str, object]]]
    ) -> None:
        """Write the same event for many objects, by id, each with its detail."""
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
        id: str | None,
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
        id: str | None,
        reason: str,
        organization_id: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Remember a refusal; it is written later, at most once a minute for one client, object and reason. ``id``,
        ``reason`` and ``detail`` must not contain request data, except for ids of existing objects and unregistered
        redirect URIs in presentable form."""
        minute = int(self._now.timestamp()) // 60
        once = f"{event}|{self.actor.id or ''}|{kind}|{id or ''}|{reason}|{minute}"
        self.refused_events.append(
            self._event(event, kind, id, organization_id, detail or {}, result=Result.REFUSED, reason=reason, once=once)
        )

    def write_refusal(self, event: AuditEvent) -> bool:
        """Write a refusal; False if it is written already. For anonymous clients a few a minute are written for each
        known object, and as many for all unknown ones together: endless attempts must neither fill the trail nor
        hide other events."""
        if event.actor.id is None:
            key = f"refused:{event.object_id or ''}"
            if (
                self._storage.attempts.count_use(key, used_at=self._now, window=_MINUTE, limit=MAX_ANONYMOUS_REFUSALS)
                is not None
            ):
                return False
        return self.write_event(event)

    def write_event(self, event: AuditEvent) -> bool:
        """Write an event unchanged; False if its ``once`` is written already."""
        if not self._storage.audit.append(event):
            return False
        self._written(event)
        return True

    def _written(self, event: AuditEvent) -> None:
        self._on_record(event)
        if not self.recorded_events:
            self._on_first_record()
        self.recorded_events.append(event)

    def _event(
        self,
        event: str,
        kind: str,
        id: str | None,
        organization_id: str | None,
        detail: Mapping[str, object],
        *,
        result: Result = Result.SUCCESS,
        reason: str | None = None,
        once: str | None = None,
        actor: Actor | None = None,
        user_id: str | None = None,
        group_id: str | None = None,
    ) -> AuditEvent:
        if event not in AuditEvent.NAMES:
            raise ValueError(f"{event} is not in the catalogue of audit events")
        if kind in USER_OWNED_KINDS and user_id is None:
            named = detail.get("user_id")
            user_id = named if isinstance(named, str) else None
        if kind in GROUP_OWNED_KINDS and group_id is None:
            named = detail.get("group_id")
            group_id = named if isinstance(named, str) else None
        if self.impersonated_user_id is not None:
            detail = {**detail, "impersonated_user_id": self.impersonated_user_id}
        return AuditEvent(
            id=new_id(),
            at=self._now,
            event=event,
            actor=actor or self.actor,
            object_kind=kind,
            object_id=id,
            user_id=user_id,
            group_id=group_id,
            organization_id=organization_id,
            result=result,
            reason=reason,
            detail=detail,
            once=once,
        )


class AuditTrail:
    """Reads recorded events and refusals."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def page(self, filter: AuditFilter, request: PageRequest = FIRST_PAGE) -> ResultPage[AuditEvent]:
        """The events that match the filter, newest first."""
        return self._storage.audit.page(request, filter)

    def get(self, event_id: str) -> AuditEvent:
        """Raises NotFound."""
        event = self._storage.audit.find(event_id)
        if event is None:
            raise NotFound("audit event", event_id)
        return event


def event_to_dict(event: AuditEvent) -> dict[str, object]:
    """The event as JSON values."""
    return {
        "id": event.id,
        "at": to_json_value(event.at),
        "event": event.event,
        "result": event.result.value,
        "reason": event.reason,
        "actor": {**asdict(event.actor), "kind": event.actor.kind.value},
        "object_kind": event.object_kind,
        "object_id": event.object_id,
        "user_id": event.user_id,
        "group_id": event.group_id,
        "organization_id": event.organization_id,
        "detail": dict(event.detail),
    }


def diff_fields(before: Any, after: Any) -> dict[str, dict[str, object]]:
    """The changed fields as JSON values: {"name": {"before": …, "after": …}}."""
    return {
        name: {"before": to_json_value(getattr(before, name)), "after": to_json_value(getattr(after, name))}
        for name, field in entity_fields(type(after)).items()
        if field.is_audited and getattr(before, name) != getattr(after, name)
    }


def dump_fields(value: Any) -> dict[str, object]:
    return {
        name: to_json_value(getattr(value, name))
        for name, field in entity_fields(type(value)).items()
        if field.is_audited
    }


def to_json_value(value: Any) -> object:
    """The value as JSON: times in RFC 3339 (or "never"), durations in whole seconds, sets sorted."""
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
