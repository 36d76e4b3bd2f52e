"""The audit trail in SQL."""

import json
from datetime import datetime

from sqlalchemy import bindparam, select

from identity.domain.audit import Actor, ActorKind, AuditEvent, Result
from identity.plugins.sql.rows import SqlStore, add_unless_there, moment, seconds
from identity.plugins.sql.tables import audit_events as table
from identity.storage.paging import FIRST_PAGE, Cursor, Page, PageRequest, page_of
from identity.storage.stores.audit import AuditStore

_COLUMNS = (
    table.c.sequence,
    table.c.id,
    table.c.at,
    table.c.event,
    table.c.actor_kind,
    table.c.actor_id,
    table.c.client_address,
    table.c.request_id,
    table.c.object_kind,
    table.c.object_id,
    table.c.organization_id,
    table.c.result,
    table.c.reason,
    table.c.detail,
    table.c.once,
)

_APPEND = add_unless_there(table, table.c.once)
_FIND = select(*_COLUMNS).where(table.c.id == bindparam("key"))
_PAGE = select(*_COLUMNS)


class SqlAuditStore(SqlStore, AuditStore):
    """One row each; the database refuses to change or delete any."""

    def append(self, event: AuditEvent) -> bool:
        """Write the event; False if its ``once`` is already there."""
        values = {
            "id": event.id,
            "at": seconds(event.at),
            "event": event.event,
            "actor_kind": event.actor.kind.value,
            "actor_id": event.actor.id,
            "client_address": event.actor.client_address,
            "request_id": event.actor.request_id,
            "object_kind": event.object_kind,
            "object_id": event.object_id,
            "organization_id": event.organization_id,
            "result": event.result.value,
            "reason": event.reason,
            "detail": json.dumps(dict(event.detail), ensure_ascii=False),
            "once": event.once,
        }
        return self._change(_APPEND, values) == 1

    def find(self, event_id: str) -> AuditEvent | None:
        """The event with this id."""
        row = self._one(_FIND, {"key": event_id})
        return None if row is None else _event_of(*row)

    def page(
        self,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_id: str | None = None,
        event: str | None = None,
        actor_id: str | None = None,
        object_id: str | None = None,
        result: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[AuditEvent]:
        """Events that fit every filter given."""
        equal = {
            table.c.organization_id: organization_id,
            table.c.event: event,
            table.c.actor_id: actor_id,
            table.c.object_id: object_id,
            table.c.result: result,
        }
        conditions = [column == value for column, value in equal.items() if value is not None]
        if since is not None:
            conditions.append(table.c.at >= seconds(since))
        if until is not None:
            conditions.append(table.c.at < seconds(until))
        if request.cursor is not None:
            conditions.append(table.c.sequence < int(request.cursor.value))
        statement = _PAGE.where(*conditions).order_by(table.c.sequence.desc()).limit(request.limit + 1)
        rows = self._all(statement)
        page = page_of(list(rows), request.limit, lambda row: Cursor(str(row[0]), row[1]))
        return Page(tuple(_event_of(*row) for row in page.items), page.next)


def _event_of(
    sequence: int,
    id_: str,
    at: int,
    event: str,
    actor_kind: str,
    actor_id: str | None,
    client_address: str | None,
    request_id: str | None,
    object_kind: str,
    object_id: str | None,
    organization_id: str | None,
    result: str,
    reason: str | None,
    detail: str,
    once: str | None,
) -> AuditEvent:
    return AuditEvent(
        id=id_,
        at=moment(at),
        event=event,
        actor=Actor(kind=ActorKind(actor_kind), id=actor_id, client_address=client_address, request_id=request_id),
        object_kind=object_kind,
        object_id=object_id,
        organization_id=organization_id,
        result=Result(result),
        reason=reason,
        detail=json.loads(detail),
        once=once,
        sequence=sequence,
    )
