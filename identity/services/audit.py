"""The audit trail: changes are recorded with the change, refusals survive the abort."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from identity.crypto.secrets import new_id
from identity.domain.audit import EVENTS, Actor, AuditEvent, Result
from identity.storage.backend import Storage

_NOT_TOLD = frozenset({"created_at", "changed_at", "version", "public_key", "digest", "hash"})


class Recorder:
    """Collects what happens in one request: ``recorded`` is written already, ``refused`` waits for its own
    transaction after the abort."""

    def __init__(
        self,
        storage: Storage,
        now: datetime,
        actor: Actor,
        *,
        on_first_record: Callable[[], None] | None = None,
    ) -> None:
        self._storage = storage
        self._now = now
        self.actor = actor
        self._on_first_record = on_first_record
        self.recorded: list[AuditEvent] = []
        self.refused: list[AuditEvent] = []

    def record(
        self,
        event: str,
        *,
        kind: str,
        id: str | None,  # noqa: A002
        organization_id: str | None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Write a change's event in the change's own transaction."""
        self._write(self._event(event, kind, id, organization_id, detail or {}))

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
        return self._write(self._event(event, kind, id, organization_id, detail or {}, once=once))

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
        """Remember a refused attempt; it is written later, at most once a minute for one party, object and reason."""
        minute = int(self._now.timestamp()) // 60
        once = f"{event}|{self.actor.id or ''}|{kind}|{id or ''}|{reason}|{minute}"
        self.refused.append(
            self._event(event, kind, id, organization_id, detail or {}, result=Result.REFUSED, reason=reason, once=once)
        )

    def _write(self, event: AuditEvent) -> bool:
        if not self._storage.audit.append(event):
            return False
        if not self.recorded and self._on_first_record is not None:
            self._on_first_record()
        self.recorded.append(event)
        return True

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
    ) -> AuditEvent:
        if event not in EVENTS:
            raise ValueError(f"{event} is not in the catalogue of audit events")
        return AuditEvent(
            id=new_id(),
            at=self._now,
            event=event,
            actor=self.actor,
            object_kind=kind,
            object_id=id,
            organization_id=organization_id,
            result=result,
            reason=reason,
            detail=detail,
            once=once,
        )


def differences(before: Any, after: Any) -> dict[str, dict[str, object]]:
    """What a change did, field by field, as plain values: {"name": {"before": …, "after": …}}."""
    return {
        one.name: {"before": _plain(getattr(before, one.name)), "after": _plain(getattr(after, one.name))}
        for one in fields(after)
        if one.name not in _NOT_TOLD and getattr(before, one.name) != getattr(after, one.name)
    }


def facts(value: Any) -> dict[str, object]:
    """What was created, field by field, as plain values."""
    return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name not in _NOT_TOLD}


def _plain(value: Any) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, frozenset):
        return sorted(_plain(one) for one in value)  # type: ignore[type-var]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return facts(value)
    return value
