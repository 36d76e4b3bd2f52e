"""The audit trail in SQL."""

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, func, insert, literal_column, select, text

from identity.domain.audit import EVERYTHING, Actor, ActorKind, AuditEvent, AuditFilter, Result
from identity.plugins.sql.paging import PagedStore, first_of
from identity.plugins.sql.rows import Values, add_unless_there, moment, object_of, readable, row_of, seconds
from identity.plugins.sql.tables import audit_events as table
from identity.storage.paging import FIRST_PAGE, MOST_COUNTED, Cursor, Page, PageRequest, Total, page_of
from identity.storage.stores.audit import AuditStore

_COLUMNS = (
    table.c.sequence,
    table.c.id,
    table.c.at,
    table.c.event,
    table.c.actor_kind,
    table.c.actor_id,
    table.c.client_id,
    table.c.session_id,
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
_APPEND_MANY = insert(table)
_FIND = select(*_COLUMNS).where(table.c.id == bindparam("key"))
_PAGE = select(*_COLUMNS)
_ORDER = (table.c.sequence,)
_LAST = select(func.coalesce(func.max(table.c.sequence), 0))
# Whoever appends holds this lock, from before it gets a number until its end.
_APPENDING = text(
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND relation = 'audit_events'::regclass AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
#: How long ``after`` waits for those who are appending, and how often it looks.
_PATIENCE_SECONDS = 1
_STEP_SECONDS = 0.01


class SqlAuditStore(PagedStore, AuditStore):
    """One row each; the database refuses to change or delete any."""

    def append(self, event: AuditEvent) -> bool:
        """Write the event; False if its ``once`` is already there."""
        return self._change(_APPEND, _values(event)) == 1

    def append_many(self, events: Sequence[AuditEvent]) -> None:
        """Write events that have no ``once``."""
        self._add_all(_APPEND_MANY, [_values(event) for event in events])

    def find(self, event_id: str) -> AuditEvent | None:
        """The event with this id."""
        row = self._one(_FIND, {"key": event_id})
        return None if row is None else _event_of(*row)

    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = EVERYTHING) -> Page[AuditEvent]:  # noqa: A002
        """Events that the filter lets through."""
        before = () if request.cursor is None else (table.c.sequence < int(request.cursor.value),)
        rows = self._all(first_of(_arms(filter, *before), _ORDER, request.limit + 1, descending=True))
        total = self._total(filter) if request.counted else None
        page = page_of(list(rows), request.limit, lambda row: Cursor(str(row[0]), str(row[1])), total)
        return Page(tuple(readable(_event_of, page.items)), page.next, page.total)

    def after(self, sequence: int, limit: int, filter: AuditFilter = EVERYTHING) -> tuple[AuditEvent, ...]:  # noqa: A002
        """Events with a greater sequence number that the filter lets through, oldest first."""
        later = table.c.sequence.between(sequence + 1, self._decided())
        return tuple(readable(_event_of, self._all(first_of(_arms(filter, later), _ORDER, limit))))

    def last_sequence(self) -> int:
        """The sequence number of the newest event."""
        row = self._one(_LAST, {})
        return 0 if row is None else row[0]

    def _total(self, filter: AuditFilter) -> Total:  # noqa: A002
        arms = [arm.with_only_columns(*_ORDER) for arm in _arms(filter)]
        return Total.of(len(self._all(first_of(arms, _ORDER, MOST_COUNTED + 1, descending=True))))

    def _decided(self) -> int:
        """The last number before which no event can turn up any more; 0 if someone takes too long to commit.

        PostgreSQL gives numbers away before the commit, so that a lower one may turn up after a higher one: those who
        are appending are let go first. New ones get higher numbers. SQLite has one writer at a time.
        """
        last = self.last_sequence()
        if self._connection.dialect.name != "postgresql":
            return last
        give_up_at = time.monotonic() + _PATIENCE_SECONDS
        appending = self._appending()
        while appending:
            if time.monotonic() > give_up_at:
                return 0
            time.sleep(_STEP_SECONDS)
            appending &= self._appending()
        return last

    def _appending(self) -> set[str]:
        """The transactions, besides this one, that have appended and are not over."""
        return {row[0] for row in self._all(_APPENDING)}


def _arms(filter: AuditFilter, *conditions: ColumnElement[bool]) -> list[Select[Any]]:  # noqa: A002
    """The events that the filter lets through, one select for each name that it wants."""
    equal: dict[ColumnElement[Any], Any] = {
        table.c.organization_id: filter.organization_id,
        table.c.actor_id: filter.actor_id or None,
        table.c.object_id: filter.object_id or None,
        # Written out: a partial index answers only where it is seen to hold the rows.
        table.c.result: filter.result and literal_column(f"'{filter.result.value}'"),
    }
    wanted = [column == value for column, value in equal.items() if value is not None]
    if filter.since is not None:
        wanted.append(table.c.at >= seconds(filter.since))
    if filter.until is not None:
        wanted.append(table.c.at < seconds(filter.until))
    statement = _PAGE.where(*wanted, *conditions)
    return [statement.where(table.c.event == event) for event in filter.events] or [statement]


@row_of(*_COLUMNS)
def _event_of(
    sequence: int,
    id_: str,
    at: int,
    event: str,
    actor_kind: str,
    actor_id: str | None,
    client_id: str | None,
    session_id: str | None,
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
        actor=Actor(
            kind=ActorKind(actor_kind),
            id=actor_id,
            client_id=client_id,
            session_id=session_id,
            client_address=client_address,
            request_id=request_id,
        ),
        object_kind=object_kind,
        object_id=object_id,
        organization_id=organization_id,
        result=Result(result),
        reason=reason,
        detail=object_of(detail),
        once=once,
        sequence=sequence,
    )


def _values(event: AuditEvent) -> Values:
    return {
        "id": event.id,
        "at": seconds(event.at),
        "event": event.event,
        "actor_kind": event.actor.kind.value,
        "actor_id": event.actor.id,
        "client_id": event.actor.client_id,
        "session_id": event.actor.session_id,
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
