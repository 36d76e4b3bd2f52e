"""What is deleted some time after it has served, in SQL: by an index of each moment, oldest first."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Delete,
    FromClause,
    Select,
    Subquery,
    Table,
    and_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    text,
    true,
    tuple_,
)
from sqlalchemy.sql.visitors import iterate

from identity.domain.attempts import NEVER
from identity.plugins.sql import tables
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.mapping import Values
from identity.plugins.sql.row_counts import rows_of
from identity.plugins.sql.rows import SqlStore, upsert
from identity.plugins.sql.settings import MARIADB
from identity.storage.stores.purges import HELD, Found, Purged, PurgeStore

_HELD: BindParameter[str] = bindparam("held", expanding=True)
#: Before all moments that are stored.
_EVER = -(2**62)
#: How many rows are looked at for each that is counted at most: a hold may be on any number of those before.
_LOOKED_AT = 10

#: A condition, of the columns of a table or of a look at it.
Condition = Callable[[Any], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class _Purge:
    """What is asked and done for one kind; ``over_at`` is a column of the table, or of one that its rows refer to.

    Rows that do not fit the conditions stay. ``partial`` where the index has none of those, if it can be so.
    """

    table: Table
    over_at: Column[Any]
    conditions: tuple[Condition, ...] = ()
    partial: bool = False

    def but(self, others: Condition) -> "_Purge":
        """The same of those that fit this as well."""
        return replace(self, conditions=(*self.conditions, others))

    @property
    def key(self) -> list[Column[Any]]:
        """The columns of the table's key."""
        return list(self.table.primary_key)

    @property
    def is_joined(self) -> bool:
        """True if another table says when rows are over."""
        return self.over_at.table is not self.table

    def goes(self, columns: Any) -> ColumnElement[bool]:
        """What fits the conditions."""
        return and_(true(), *(condition(columns) for condition in self.conditions))

    def looked_at(self, *, whole_index: bool) -> Subquery:
        """Rows that were over before, from a place on and whether they go or not, as many as ``looked_at`` says.

        So it takes no longer however many stay, and goes by the index alone; one that has what stays too is the
        ``whole_index``.
        """
        table = self.over_at.table
        key: list[Any] = list(table.primary_key)
        places = [bindparam(f"since_{column.name}", type_=column.type) for column in key]
        further = key[0] > places[0] if len(key) == 1 else tuple_(*key) > tuple_(*places)
        named = [one for one in iterate(self.goes(table.c)) if isinstance(one, Column) and one.table is table]
        found = select(*dict.fromkeys((*key, self.over_at, *named))).where(
            self.over_at < bindparam("before"),
            self.over_at >= bindparam("since"),
            or_(self.over_at > bindparam("since"), further),
        )
        if self.partial and not whole_index:
            found = found.where(self.goes(table.c))
        return found.order_by(self.over_at, *key).limit(bindparam("looked_at")).subquery()

    def found(self, *, whole_index: bool) -> Select[Any]:
        """Of all that are looked at: the moment, the key by which they are, the key of what goes or else NULL."""
        seen = self.looked_at(whole_index=whole_index)
        at, place = seen.c[self.over_at.key], [seen.c[column.key] for column in self.over_at.table.primary_key]
        if self.is_joined:
            # In no order: whoever sorts reads all of them first.
            joined = select(at, *place, *self.key).outerjoin_from(seen, self.table, self._belongs(seen))
            return joined.limit(bindparam("limit"))
        return select(at, *place, case((self.goes(seen.c), 1), else_=None)).order_by(at, *place)

    def counted(self, *, whole_index: bool) -> Select[Any]:
        """How many go of those that are looked at, up to ``limit``."""
        seen = self.looked_at(whole_index=whole_index)
        if self.is_joined:
            rows = select(*self.key).join_from(seen, self.table, self._belongs(seen))
        else:
            rows = select(seen.c[self.over_at.key]).where(self.goes(seen.c))
        return _count(rows.limit(bindparam("limit")))

    def _belongs(self, seen: Subquery) -> ColumnElement[bool]:
        """What belongs to a row that is looked at, and goes with it; of one that stays nothing is read."""
        [reference] = [key for key in self.table.foreign_keys if key.references(self.over_at.table)]
        return reference.parent == case((self.goes(seen.c), seen.c[reference.column.key]), else_=None)

    def these(self, *, alone: bool) -> ColumnElement[bool]:
        """The rows with ``keys``; unless these are looked at alone, those of them that were over before."""
        keys: BindParameter[Any] = bindparam("keys", expanding=True)
        among = self.key[0].in_(keys) if len(self.key) == 1 else tuple_(*self.key).in_(keys)
        if alone:
            return among
        return and_(among, self.table.c[self.over_at.key] < bindparam("before"), self.goes(self.table.c))


class _Statements:
    """Made once for each kind, and for indexes that are partial or whole."""

    def __init__(self, purge: _Purge, *, whole_index: bool) -> None:
        self.is_joined = purge.is_joined
        self.places = [f"since_{column.name}" for column in purge.over_at.table.primary_key]
        self.find = purge.found(whole_index=whole_index)
        self.count = purge.counted(whole_index=whole_index)
        self.delete: Delete = delete(purge.table).where(purge.these(alone=False))
        #: Those that nobody else is changing, where a database has more than one writer.
        self.hold = select(*purge.key).where(purge.these(alone=False)).with_for_update(skip_locked=True)
        self.delete_held: Delete = delete(purge.table).where(purge.these(alone=True))

    @property
    def beginning(self) -> tuple[Any, ...]:
        """The place before all others."""
        return (_EVER, *[None for _ in self.places])

    def since(self, place: tuple[Any, ...]) -> Values:
        """The parameters that say where to go on."""
        return dict(zip(("since", *self.places), place, strict=True))


def _first(table: FromClause) -> Select[Any]:
    """As many rows as ``limit`` says."""
    return select(*table.primary_key).limit(bindparam("limit"))


def _count(rows: Select[Any]) -> Select[Any]:
    return select(func.count()).select_from(rows.subquery())


def _purge(over_at: Column[Any], *conditions: Condition, partial: bool = False) -> _Purge:
    return _Purge(over_at.table, over_at, conditions, partial)


#: When rows are over, and which others never are.
_OVER: dict[Purged, _Purge] = {
    Purged.ACCESS_TOKENS: _purge(tables.access_tokens.c.expires_at),
    # They end with their family, and only that has an index of it: a refresh writes one less.
    Purged.REFRESH_TOKENS: _Purge(tables.refresh_tokens, tables.token_families.c.ends_at),
    Purged.FAMILIES: _purge(tables.token_families.c.ends_at),
    Purged.CODES: _purge(
        tables.authorization_codes.c.expires_at, lambda code: code.redeemed_at.is_(None), partial=True
    ),
    Purged.SESSIONS: _purge(tables.sessions.c.ends_at),
    Purged.REQUESTS: _purge(tables.authorization_requests.c.expires_at),
    Purged.MESSAGES: _purge(tables.outgoing_messages.c.expires_at),
    Purged.ATTEMPTS: _purge(tables.attempts.c.counted_at, lambda count: count.next_at < seconds(NEVER)),
    Purged.RECORDS: _purge(tables.records.c.expires_at),
    Purged.AUDIT_EVENTS: _purge(tables.audit_events.c.at),
}


def _of_others(row: Any) -> ColumnElement[bool]:
    """What is of nobody who is held, nor of anybody in the organizations that are."""
    people = select(tables.users.c.id).where(
        tables.users.c.id == row.user_id, tables.users.c.organization_id.in_(_HELD)
    )
    return or_(row.user_id.is_(None), and_(row.user_id.not_in(_HELD), ~people.exists()))


def _about_others(event: Any) -> ColumnElement[bool]:
    """What is not held by whom it names."""
    named = (event.organization_id, event.actor_id, event.object_id)
    return and_(*(or_(column.is_(None), column.not_in(_HELD)) for column in named))


#: What is of nobody and of no organization that is held.
_OTHERS: dict[Purged, Condition] = {
    **dict.fromkeys(HELD, _of_others),
    Purged.AUDIT_EVENTS: _about_others,
}
#: By kind and by whether all indexes are whole, as MariaDB has them.
_PURGES = {
    (purged, whole): _Statements(over, whole_index=whole) for purged, over in _OVER.items() for whole in (False, True)
}
_PURGES_BUT_HELD = {
    (purged, whole): _Statements(_OVER[purged].but(others), whole_index=whole)
    for purged, others in _OTHERS.items()
    for whole in (False, True)
}
_COUNTS = {purged: _count(_first(over.table)) for purged, over in _OVER.items()}
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
        statements, given = self._of(purged, before, held)
        place = statements.beginning if since is None else since
        given |= {**statements.since(place), "looked_at": limit, "limit": limit}
        rows = self._all(statements.find, given)
        # Places are as they are stored: none need be a moment that can be told.
        width = len(place)
        if statements.is_joined:
            keys = [_key(row[width:]) for row in rows if row[width] is not None]
            # All that belongs to those rows may not have been found: the rest is, once this is gone.
            behind = place if keys else max((tuple(row[:width]) for row in rows), default=place)
        else:
            keys = [_key(row[1:width]) for row in rows if row[width]]
            behind = tuple(rows[-1][:width]) if rows else place
        return Found(keys, behind if len(rows) == limit else None)

    def delete(self, purged: Purged, keys: Sequence[Any], before: datetime, *, held: Collection[str] = ()) -> int:
        if not keys:
            return 0
        statements, given = self._of(purged, before, held)
        if purged is Purged.AUDIT_EVENTS:
            # The database itself lets nothing go that is newer.
            self._change(_MOVE_FLOOR, {"id": 1, "kept_since": seconds(before)})
        given["keys"] = list(keys)
        if self._connection.is_sqlite:
            return self._change(statements.delete, given)
        ours = [_key(row) for row in self._all(statements.hold, given)]
        return self._change(statements.delete_held, {"keys": ours}) if ours else 0

    def over(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        statements, given = self._of(purged, before, held)
        given |= {**statements.since(statements.beginning), "looked_at": _LOOKED_AT * limit, "limit": limit}
        row = self._one(statements.count, given)
        return 0 if row is None else int(row[0])

    def kept(self, purged: Purged, limit: int) -> int:
        row = self._one(_COUNTS[purged], {"limit": limit})
        count = 0 if row is None else int(row[0])
        if count < limit:
            return count
        row = self._one(text(rows_of(self._connection.dialect.name, _OVER[purged].table.name)), {})
        return count if row is None else max(count, int(row[0] or 0))

    def _of(self, purged: Purged, before: datetime, held: Collection[str]) -> tuple[_Statements, dict[str, Any]]:
        given: Values = {"before": seconds(before)}
        kind = purged, self._connection.dialect.name == MARIADB
        if held and purged in HELD:
            return _PURGES_BUT_HELD[kind], {**given, "held": list(held)}
        return _PURGES[kind], dict(given)


def _key(row: Sequence[Any]) -> Any:
    """One value, or several together: as ``keys`` wants them."""
    return row[0] if len(row) == 1 else tuple(row)
