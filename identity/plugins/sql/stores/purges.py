"""What is deleted some time after it has served, in SQL: by an index of each moment, oldest first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Delete,
    FromClause,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    text,
    tuple_,
)

from identity.domain.attempts import NEVER
from identity.plugins.sql import tables
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.mapping import Values
from identity.plugins.sql.rows import SqlStore, upsert
from identity.storage.stores.purges import HELD, Found, Purged, PurgeStore

_HELD: BindParameter[str] = bindparam("held", expanding=True)
#: Before all moments that are stored.
_EVER = -(2**62)


@dataclass(frozen=True, slots=True)
class _Purge:
    """What is asked and done for one kind; ``over_at`` is a column of the table, or of one that its rows refer to."""

    table: Table
    over_at: Column[Any]
    conditions: tuple[ColumnElement[bool], ...] = ()

    def but(self, others: ColumnElement[bool]) -> "_Purge":
        """The same of those that fit this as well."""
        return _Purge(self.table, self.over_at, (*self.conditions, others))

    @property
    def key(self) -> list[Column[Any]]:
        """The columns of the table's key."""
        return list(self.table.primary_key)

    def found(self) -> Select[Any]:
        """The keys of the rows that were over before, with the moment of each; oldest first."""
        found = select(*self.key, self.over_at).where(self.over_at < bindparam("before"), *self.conditions)
        if self.over_at.table is not self.table:
            found = found.join_from(self.over_at.table, self.table)
        return found.order_by(self.over_at).limit(bindparam("limit"))

    def these(self, *, alone: bool) -> ColumnElement[bool]:
        """The rows with ``keys``; unless these are looked at alone, those of them that were over before."""
        keys: BindParameter[Any] = bindparam("keys", expanding=True)
        among = self.key[0].in_(keys) if len(self.key) == 1 else tuple_(*self.key).in_(keys)
        return among if alone else and_(among, self.table.c[self.over_at.key] < bindparam("before"), *self.conditions)


class _Statements:
    """Made once for each kind."""

    def __init__(self, purge: _Purge) -> None:
        self.find = purge.found().where(purge.over_at >= bindparam("since"))
        self.count = _count(purge.found())
        self.delete: Delete = delete(purge.table).where(purge.these(alone=False))
        #: Those that nobody else is changing, where a database has more than one writer.
        self.hold = select(*purge.key).where(purge.these(alone=False)).with_for_update(skip_locked=True)
        self.delete_held: Delete = delete(purge.table).where(purge.these(alone=True))


def _first(table: FromClause) -> Select[Any]:
    """As many rows as ``limit`` says."""
    return select(*table.primary_key).limit(bindparam("limit"))


def _count(rows: Select[Any]) -> Select[Any]:
    return select(func.count()).select_from(rows.subquery())


def _purge(over_at: Column[Any], *conditions: ColumnElement[bool]) -> _Purge:
    return _Purge(over_at.table, over_at, conditions)


#: When rows are over, and which others never are.
_OVER: dict[Purged, _Purge] = {
    Purged.ACCESS_TOKENS: _purge(tables.access_tokens.c.expires_at),
    # They end with their family, and only that has an index of it: a refresh writes one less.
    Purged.REFRESH_TOKENS: _Purge(tables.refresh_tokens, tables.token_families.c.ends_at),
    Purged.FAMILIES: _purge(tables.token_families.c.ends_at),
    Purged.CODES: _purge(tables.authorization_codes.c.expires_at, tables.authorization_codes.c.redeemed_at.is_(None)),
    Purged.SESSIONS: _purge(tables.sessions.c.ends_at),
    Purged.REQUESTS: _purge(tables.authorization_requests.c.expires_at),
    Purged.MESSAGES: _purge(tables.outgoing_messages.c.expires_at),
    Purged.ATTEMPTS: _purge(tables.attempts.c.counted_at, tables.attempts.c.next_at < seconds(NEVER)),
    Purged.RECORDS: _purge(tables.records.c.expires_at),
    Purged.AUDIT_EVENTS: _purge(tables.audit_events.c.at),
}


def _others(column: Column[Any]) -> ColumnElement[bool]:
    """What is not held by what stands in this column."""
    return or_(column.is_(None), column.not_in(_HELD))


def _of_others(user_id: Column[Any]) -> ColumnElement[bool]:
    """What is of nobody who is held, nor of anybody in the organizations that are."""
    people = select(tables.users.c.id).where(tables.users.c.id == user_id, tables.users.c.organization_id.in_(_HELD))
    return or_(user_id.is_(None), and_(user_id.not_in(_HELD), ~people.exists()))


_events = tables.audit_events.c
#: What is of nobody and of no organization that is held.
_OTHERS: dict[Purged, ColumnElement[bool]] = {
    Purged.ACCESS_TOKENS: _of_others(tables.access_tokens.c.user_id),
    Purged.REFRESH_TOKENS: _of_others(tables.refresh_tokens.c.user_id),
    Purged.FAMILIES: _of_others(tables.token_families.c.user_id),
    Purged.SESSIONS: _of_others(tables.sessions.c.user_id),
    Purged.AUDIT_EVENTS: and_(*map(_others, (_events.organization_id, _events.actor_id, _events.object_id))),
}
_PURGES = {purged: _Statements(over) for purged, over in _OVER.items()}
_PURGES_BUT_HELD = {purged: _Statements(_OVER[purged].but(others)) for purged, others in _OTHERS.items()}
_COUNTS = {purged: _count(_first(over.table)) for purged, over in _OVER.items()}
#: About how many rows a table has, without a look at them: as of the last time it was analysed, or (SQLite, where the
#: oldest rows go first) by the numbers of the first and the last one.
_ESTIMATES = {
    "postgresql": "SELECT reltuples FROM pg_class WHERE oid = to_regclass('{name}')",
    "mariadb": "SELECT table_rows FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name = '{name}'",
    "sqlite": "SELECT (SELECT max(rowid) FROM {name}) - (SELECT min(rowid) FROM {name}) + 1",
}
_MOVE_FLOOR = upsert(tables.audit_floor, by=[tables.audit_floor.c.id], replacing=[tables.audit_floor.c.kept_since])


class SqlPurgeStore(SqlStore, PurgeStore):
    """A look for each kind, and a statement that deletes by key; what goes with a row goes by foreign keys."""

    def find(
        self,
        purged: Purged,
        before: datetime,
        limit: int,
        *,
        held: Collection[str] = (),
        since: Any = None,
    ) -> Found:
        statements, given = _of(purged, before, held)
        given |= {"since": _EVER if since is None else since, "limit": limit}
        rows = self._all(statements.find, given)
        # As it is stored: it need not be a moment that can be told.
        return Found([_key(row[:-1]) for row in rows], rows[-1][-1] if rows else None)

    def delete(self, purged: Purged, keys: Sequence[Any], before: datetime, *, held: Collection[str] = ()) -> int:
        if not keys:
            return 0
        statements, given = _of(purged, before, held)
        if purged is Purged.AUDIT_EVENTS:
            # The database itself lets nothing go that is newer.
            self._change(_MOVE_FLOOR, {"id": 1, "kept_since": seconds(before)})
        given["keys"] = list(keys)
        if self._link.is_sqlite:
            return self._change(statements.delete, given)
        ours = [_key(row) for row in self._all(statements.hold, given)]
        return self._change(statements.delete_held, {"keys": ours}) if ours else 0

    def over(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        statements, given = _of(purged, before, held)
        row = self._one(statements.count, {**given, "limit": limit})
        return 0 if row is None else int(row[0])

    def kept(self, purged: Purged, limit: int) -> int:
        row = self._one(_COUNTS[purged], {"limit": limit})
        count = 0 if row is None else int(row[0])
        if count < limit:
            return count
        # The names are those of our own tables.
        estimate = _ESTIMATES[self._link.dialect.name].format(name=_OVER[purged].table.name)
        row = self._one(text(estimate), {})
        return count if row is None else max(count, int(row[0] or 0))


def _of(purged: Purged, before: datetime, held: Collection[str]) -> tuple[_Statements, dict[str, Any]]:
    given: Values = {"before": seconds(before)}
    if held and purged in HELD:
        return _PURGES_BUT_HELD[purged], {**given, "held": list(held)}
    return _PURGES[purged], dict(given)


def _key(row: Sequence[Any]) -> Any:
    """One value, or several together: as ``keys`` wants them."""
    return row[0] if len(row) == 1 else tuple(row)
