"""The audit trail in SQL."""

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, func, literal_column, or_, select, text, update

from identity.domain.audit import ERASED, EVERYTHING, AuditEvent, AuditFilter
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.errors import Contended
from identity.plugins.sql.mapping import Mapped, readable
from identity.plugins.sql.mariadb import MARIADB
from identity.plugins.sql.paging import PagedStore, first_of
from identity.plugins.sql.rows import add_unless_there
from identity.plugins.sql.tables import audit_events as table
from identity.plugins.sql.tables import users
from identity.storage.paging import FIRST_PAGE, MOST_COUNTED, Cursor, Page, PageRequest, Total, page_of
from identity.storage.stores.audit import AuditStore

_ROWS = Mapped[AuditEvent](table)
#: Where a row tells its place in the list.
_PLACE = [[column.name for column in _ROWS.columns].index(name) for name in ("sequence", "id")]

_APPEND = add_unless_there(table, table.c.once)
_FIND = _ROWS.select.where(table.c.id == bindparam("key"))
_ERASED = json.dumps(ERASED)
_ERASE = (
    update(table)
    .where(
        or_(table.c.object_id == bindparam("gone"), table.c.organization_id == bindparam("gone")),
        table.c.object_kind == "user",
        table.c.detail.not_in(["{}", _ERASED]),
        ~select(users.c.id).where(users.c.id == table.c.object_id).exists(),
    )
    .values(detail=_ERASED)
)
_ORDER = (table.c.sequence,)
_LAST = select(func.coalesce(func.max(table.c.sequence), 0))
# With MariaDB whoever appends has passed this gate with others, from before it gets a number until its end.
_PASS = text("SELECT id FROM audit_gate LOCK IN SHARE MODE")
_CLOSE = ("START TRANSACTION READ WRITE", "SELECT id FROM audit_gate FOR UPDATE WAIT 1", "COMMIT")
# With PostgreSQL whoever appends holds this lock, from before it gets a number until its end.
_APPENDING = text(
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND relation = 'audit_events'::regclass AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
#: How long ``after`` waits for those who are appending, and how often it looks.
_PATIENCE_SECONDS = 1
_STEP_SECONDS = 0.01


class SqlAuditStore(PagedStore, AuditStore):
    """One row each; the database refuses to change or delete any, but for those that are old enough or erased."""

    def append(self, event: AuditEvent) -> bool:
        self._pass_gate()
        return self._change(_APPEND, _ROWS.values(event)) == 1

    def append_many(self, events: Sequence[AuditEvent]) -> None:
        self._pass_gate()
        self._add_all(_ROWS.insert, [_ROWS.values(event) for event in events])

    def _pass_gate(self) -> None:
        if self._connection.dialect.name == MARIADB:
            self._all(_PASS)

    def erase(self, gone: str) -> int:
        return self._change(_ERASE, {"gone": gone})

    def find(self, event_id: str) -> AuditEvent | None:
        return self._find(_ROWS.of, _FIND, {"key": event_id})

    def page(self, request: PageRequest = FIRST_PAGE, filter: AuditFilter = EVERYTHING) -> Page[AuditEvent]:  # noqa: A002
        before = () if request.cursor is None else (table.c.sequence < int(request.cursor.value),)
        rows = self._all(first_of(_arms(filter, *before), _ORDER, request.limit + 1, descending=True))
        total = self._total(filter) if request.counted else None
        page = page_of(list(rows), request.limit, lambda row: Cursor(*(str(row[at]) for at in _PLACE)), total)
        return Page(tuple(readable(_ROWS.of, page.items)), page.next, page.total)

    def after(self, sequence: int, limit: int, filter: AuditFilter = EVERYTHING) -> tuple[AuditEvent, ...]:  # noqa: A002
        later = table.c.sequence.between(sequence + 1, self._decided())
        return self._list(_ROWS.of, first_of(_arms(filter, later), _ORDER, limit))

    def _total(self, filter: AuditFilter) -> Total:  # noqa: A002
        arms = [arm.with_only_columns(*_ORDER) for arm in _arms(filter)]
        return Total.of(len(self._all(first_of(arms, _ORDER, MOST_COUNTED + 1, descending=True))))

    def _decided(self) -> int:
        """The last number before which no event can turn up any more; 0 if someone takes too long to commit.

        PostgreSQL and MariaDB give numbers away before the commit, so that a lower one may turn up after a higher one:
        those who are appending are let go first. New ones get higher numbers. SQLite has one writer at a time.
        """
        last: int = self._all(_LAST)[0][0]
        if self._connection.dialect.name == MARIADB:
            return last if self._all_are_out() else 0
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

    def _all_are_out(self) -> bool:
        """True once the gate was closed for a moment; False if it takes too long."""
        try:
            for words in _CLOSE:
                self._send(words)
        except Contended:
            self._send("ROLLBACK")
            return False
        return True

    def _appending(self) -> set[str]:
        """The transactions, besides this one, that have appended and are not over."""
        return {row[0] for row in self._all(_APPENDING)}


def _arms(filter: AuditFilter, *conditions: ColumnElement[bool]) -> list[Select[Any]]:  # noqa: A002
    """The events that the filter lets through: a select for each name that it wants, and for each place of an id."""
    equal: dict[ColumnElement[Any], Any] = {
        table.c.organization_id: filter.organization_id,
        table.c.actor_id: filter.actor_id or None,
        table.c.request_id: filter.request_id or None,
        # Written out: a partial index answers only where it is seen to hold the rows.
        table.c.result: filter.result and literal_column(f"'{filter.result.value}'"),
    }
    wanted = [column == value for column, value in equal.items() if value is not None]
    if filter.since is not None:
        wanted.append(table.c.at >= seconds(filter.since))
    if filter.until is not None:
        wanted.append(table.c.at < seconds(filter.until))
    statement = _ROWS.select.where(*wanted, *conditions)
    named = [statement.where(table.c.event == event) for event in filter.events] or [statement]
    places = {
        filter.object_id: (table.c.object_id, table.c.user_id),
        filter.party_id: (table.c.actor_id, table.c.object_id, table.c.user_id),
    }
    for identifier, columns in places.items():
        if identifier:
            named = [one.where(column == identifier) for one in named for column in columns]
    return named
