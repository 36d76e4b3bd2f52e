"""The audit trail in SQL."""

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal_column, or_, select, text, update

from identity.domain.audit import ERASED, UNFILTERED, AuditEvent, AuditFilter
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.errors import TransactionConflict
from identity.plugins.sql.mariadb import MARIADB
from identity.plugins.sql.paging import PagedSqlStore, merge_first_rows
from identity.plugins.sql.row_mapping import MappedTable, skip_unreadable
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import audit_events as table
from identity.plugins.sql.tables import users
from identity.storage.paging import (
    FIRST_PAGE,
    MAX_COUNTED_ROWS,
    PageCursor,
    PageRequest,
    ResultPage,
    RowTotal,
    build_page,
)
from identity.storage.stores.audit import AuditStore

_MAPPED_TABLE = MappedTable[AuditEvent](table)
#: Positions of the sort columns in a row.
_CURSOR_POSITIONS = [[column.name for column in _MAPPED_TABLE.columns].index(name) for name in ("sequence", "id")]

_APPEND = CompiledStatement(Upsert(table, [table.c.once]))
_ORDER = (table.c.sequence,)
_LAST_SEQUENCE = select(func.coalesce(func.max(table.c.sequence), 0))
# MariaDB: every appending transaction shares this lock, from before it gets a number until its end.
_LOCK_AUDIT_GATE_SHARED = text("SELECT id FROM audit_gate LOCK IN SHARE MODE")
_LOCK_AUDIT_GATE_EXCLUSIVE = ("START TRANSACTION READ WRITE", "SELECT id FROM audit_gate FOR UPDATE WAIT 1", "COMMIT")
# PostgreSQL: every appending transaction holds this lock, from before it gets a number until its end.
_APPENDING_TRANSACTIONS = text(
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND relation = 'audit_events'::regclass AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
#: Seconds that ``list_after`` waits for appending transactions, and the polling interval.
_DRAIN_TIMEOUT = 1
_DRAIN_POLL_SECONDS = 0.01


class SqlAuditStore(PagedSqlStore, AuditStore):
    """One row each; the database refuses to change or delete any, except old enough or erased ones."""

    def append(self, event: AuditEvent) -> bool:
        self._lock_audit_gate_shared()
        return self._execute(_APPEND, _MAPPED_TABLE.to_row(event)) == 1

    def append_many(self, events: Sequence[AuditEvent]) -> None:
        self._lock_audit_gate_shared()
        self._insert_all(_MAPPED_TABLE.insert, [_MAPPED_TABLE.to_row(event) for event in events])

    def _lock_audit_gate_shared(self) -> None:
        if self._connection.dialect.name == MARIADB:
            self._fetch_all(_LOCK_AUDIT_GATE_SHARED)

    def erase_personal_details(self, deleted_ids: str) -> int:
        erased = json.dumps(ERASED)
        doomed = (
            or_(table.c.object_id == deleted_ids, table.c.organization_id == deleted_ids),
            table.c.object_kind == "user",
            table.c.detail.not_in(["{}", erased]),
            ~select(users.c.id).where(users.c.id == table.c.object_id).exists(),
        )
        return self._execute(update(table).where(*doomed).values(detail=erased))

    def find(self, event_id: str) -> AuditEvent | None:
        return self._fetch_value(_MAPPED_TABLE.from_row, _MAPPED_TABLE.select.where(table.c.id == event_id))

    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = UNFILTERED) -> ResultPage[AuditEvent]:
        before = () if request.cursor is None else (table.c.sequence < int(request.cursor.value),)
        rows = self._fetch_all(
            merge_first_rows(_filter_selects(filter, *before), _ORDER, request.limit + 1, descending=True)
        )
        total = self._count_matches(filter) if request.with_total else None
        page = build_page(
            list(rows), request.limit, lambda row: PageCursor(*(str(row[at]) for at in _CURSOR_POSITIONS)), total
        )
        return ResultPage(tuple(skip_unreadable(_MAPPED_TABLE.from_row, page.items)), page.next_cursor, page.total)

    def list_after(self, sequence: int, limit: int, filter: AuditFilter = UNFILTERED) -> tuple[AuditEvent, ...]:
        later = table.c.sequence.between(sequence + 1, self._last_settled_sequence())
        return self._fetch_values(
            _MAPPED_TABLE.from_row, merge_first_rows(_filter_selects(filter, later), _ORDER, limit)
        )

    def _count_matches(self, filter: AuditFilter) -> RowTotal:
        arms = [arm.with_only_columns(*_ORDER) for arm in _filter_selects(filter)]
        return RowTotal.from_count(
            len(self._fetch_all(merge_first_rows(arms, _ORDER, MAX_COUNTED_ROWS + 1, descending=True)))
        )

    def _last_settled_sequence(self) -> int:
        """The last number below which no further event can appear; 0 if another transaction takes too long to commit.
        PostgreSQL and MariaDB assign numbers before the commit, so that a lower one may appear after a higher one: wait
        for the appending transactions first. New ones get higher numbers. SQLite has one writer at a time."""
        last: int = self._fetch_all(_LAST_SEQUENCE)[0][0]
        if self._connection.dialect.name == MARIADB:
            return last if self._drain_appending_transactions() else 0
        if self._connection.dialect.name != "postgresql":
            return last
        give_up_at = time.monotonic() + _DRAIN_TIMEOUT
        appending = self._list_appending_transactions()
        while appending:
            if time.monotonic() > give_up_at:
                return 0
            time.sleep(_DRAIN_POLL_SECONDS)
            appending &= self._list_appending_transactions()
        return last

    def _drain_appending_transactions(self) -> bool:
        """True once the lock could be taken exclusively; False on a timeout."""
        try:
            for statement in _LOCK_AUDIT_GATE_EXCLUSIVE:
                self._execute_raw(statement)
        except TransactionConflict:
            self._execute_raw("ROLLBACK")
            return False
        return True

    def _list_appending_transactions(self) -> set[str]:
        """Other transactions that have appended and are still running."""
        return {row[0] for row in self._fetch_all(_APPENDING_TRANSACTIONS)}


def _filter_selects(filter: AuditFilter, *conditions: ColumnElement[bool]) -> list[Select[Any]]:
    """The events that match the filter: a select for each event name, and for each column with the id."""
    organization: ColumnElement[Any] = table.c.organization_id
    if filter.actor_id or filter.object_id or filter.involved_id:
        # An expression, so that SQLite does not read all events of the organization for one actor or object.
        organization = func.coalesce(organization, literal_column("''"))
    equal: dict[ColumnElement[Any], Any] = {
        organization: filter.organization_id,
        table.c.actor_id: filter.actor_id or None,
        table.c.request_id: filter.request_id or None,
        # As a literal: the planner must see that a partial index contains the rows.
        table.c.result: filter.result and literal_column(f"'{filter.result.value}'"),
    }
    where = [column == value for column, value in equal.items() if value is not None]
    if filter.since is not None:
        where.append(table.c.at >= seconds_from_datetime(filter.since))
    if filter.until is not None:
        where.append(table.c.at < seconds_from_datetime(filter.until))
    statement = _MAPPED_TABLE.select.where(*where, *conditions)
    named = [statement.where(table.c.event == event) for event in filter.event_names] or [statement]
    resource_columns = {
        filter.object_id: (table.c.object_id, table.c.user_id, table.c.group_id),
        filter.involved_id: (table.c.actor_id, table.c.object_id, table.c.user_id, table.c.group_id),
    }
    for identifier, columns in resource_columns.items():
        if identifier:
            named = [item.where(column == identifier) for item in named for column in columns]
    return named
