"""Purges in SQL: by an index of each expiry column, oldest first."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Delete,
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

from identity.domain.attempts import NO_NEXT_ATTEMPT
from identity.plugins.sql import tables
from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.row_counts import row_count_statement
from identity.plugins.sql.row_mapping import Values
from identity.plugins.sql.settings import MARIADB
from identity.plugins.sql.sql_store import SqlStore, upsert
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeCandidates, PurgeKind, PurgeStore

_LEGAL_HOLDS_PARAM: BindParameter[str] = bindparam("held", expanding=True)
#: Less than all stored timestamps.
_BEFORE_ALL = -(2**62)
#: Rows scanned per counted row at most: any number of the oldest may be under a legal hold.
_SCAN_FACTOR = 10

#: A condition on the columns of a table or of a scan of it.
Condition = Callable[[Any], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class _PurgeRule:
    """What is queried and deleted for one kind; ``expiry_column`` belongs to the table, or to one that its rows refer
    to. Rows that do not match the conditions stay. ``has_partial_index`` says that the index omits them where the
    database supports that."""

    table: Table
    expiry_column: Column[Any]
    conditions: tuple[Condition, ...] = ()
    has_partial_index: bool = False

    def with_condition(self, condition: Condition) -> "_PurgeRule":
        return replace(self, conditions=(*self.conditions, condition))

    @property
    def key(self) -> list[Column[Any]]:
        return list(self.table.primary_key)

    @property
    def is_joined(self) -> bool:
        """True if another table has the expiry column."""
        return self.expiry_column.table is not self.table

    def matches(self, columns: Any) -> ColumnElement[bool]:
        return and_(true(), *(condition(columns) for condition in self.conditions))

    def scanned_rows(self, *, whole_index: bool) -> Subquery:
        """Up to ``looked_at`` expired rows after a cursor, whether they are to be deleted or not. So the cost does not
        grow with the rows that stay, and an index alone is enough; ``whole_index`` is one that includes rows that
        stay."""
        table = self.expiry_column.table
        key: list[Any] = list(table.primary_key)
        cursor_parameters = [bindparam(f"since_{column.name}", type_=column.type) for column in key]
        further = key[0] > cursor_parameters[0] if len(key) == 1 else tuple_(*key) > tuple_(*cursor_parameters)
        named = [item for item in iterate(self.matches(table.c)) if isinstance(item, Column) and item.table is table]
        found = select(*dict.fromkeys((*key, self.expiry_column, *named))).where(
            self.expiry_column < bindparam("before"),
            self.expiry_column >= bindparam("since"),
            or_(self.expiry_column > bindparam("since"), further),
        )
        if self.has_partial_index and not whole_index:
            found = found.where(self.matches(table.c))
        return found.order_by(self.expiry_column, *key).limit(bindparam("looked_at")).subquery()

    def candidates_select(self, *, whole_index: bool) -> Select[Any]:
        """For each scanned row: expiry, its key, and the key of the row to delete or else NULL."""
        scanned = self.scanned_rows(whole_index=whole_index)
        at = scanned.c[self.expiry_column.key]
        position = [scanned.c[column.key] for column in self.expiry_column.table.primary_key]
        if self.is_joined:
            # Unordered: sorting would read all of them first.
            joined = select(at, *position, *self.key).outerjoin_from(scanned, self.table, self._join_condition(scanned))
            return joined.limit(bindparam("limit"))
        return select(at, *position, case((self.matches(scanned.c), 1), else_=None)).order_by(at, *position)

    def count_select(self, *, whole_index: bool) -> Select[Any]:
        """Number of scanned rows to delete, up to ``limit``."""
        scanned = self.scanned_rows(whole_index=whole_index)
        if self.is_joined:
            rows = select(*self.key).join_from(scanned, self.table, self._join_condition(scanned))
        else:
            rows = select(scanned.c[self.expiry_column.key]).where(self.matches(scanned.c))
        return _count_rows(rows.limit(bindparam("limit")))

    def _join_condition(self, scanned: Subquery) -> ColumnElement[bool]:
        """Joins the rows to delete with a scanned row; of one that stays nothing is read."""
        [reference] = [key for key in self.table.foreign_keys if key.references(self.expiry_column.table)]
        return reference.parent == case((self.matches(scanned.c), scanned.c[reference.column.key]), else_=None)

    def key_condition(self, *, keys_only: bool) -> ColumnElement[bool]:
        """The rows with ``keys``; unless ``keys_only``, only those that are still expired."""
        keys: BindParameter[Any] = bindparam("keys", expanding=True)
        among = self.key[0].in_(keys) if len(self.key) == 1 else tuple_(*self.key).in_(keys)
        if keys_only:
            return among
        return and_(among, self.table.c[self.expiry_column.key] < bindparam("before"), self.matches(self.table.c))


class _PurgeStatements:
    """Built once for each kind, for partial and for whole indexes."""

    def __init__(self, purge: _PurgeRule, *, whole_index: bool) -> None:
        self.is_joined = purge.is_joined
        self.cursor_parameters = [f"since_{column.name}" for column in purge.expiry_column.table.primary_key]
        self.find = purge.candidates_select(whole_index=whole_index)
        self.count = purge.count_select(whole_index=whole_index)
        self.delete: Delete = delete(purge.table).where(purge.key_condition(keys_only=False))
        #: Rows that no other transaction is changing, for databases with more than one writer.
        self.lock = select(*purge.key).where(purge.key_condition(keys_only=False)).with_for_update(skip_locked=True)
        self.delete_locked: Delete = delete(purge.table).where(purge.key_condition(keys_only=True))

    @property
    def first_cursor(self) -> tuple[Any, ...]:
        return (_BEFORE_ALL, *[None for _ in self.cursor_parameters])

    def bind_cursor(self, cursor: tuple[Any, ...]) -> Values:
        return dict(zip(("since", *self.cursor_parameters), cursor, strict=True))


def _count_rows(rows: Select[Any]) -> Select[Any]:
    return select(func.count()).select_from(rows.subquery())


def _create_rule(expiry_column: Column[Any], *conditions: Condition, has_partial_index: bool = False) -> _PurgeRule:
    return _PurgeRule(expiry_column.table, expiry_column, conditions, has_partial_index)


#: When rows expire, and which rows never do.
_RULES: dict[PurgeKind, _PurgeRule] = {
    PurgeKind.ACCESS_TOKENS: _create_rule(tables.access_tokens.c.expires_at),
    # They end with their family, and only its table has an index for it, which saves one in each refresh.
    PurgeKind.REFRESH_TOKENS: _PurgeRule(tables.refresh_tokens, tables.token_families.c.ends_at),
    PurgeKind.FAMILIES: _create_rule(tables.token_families.c.ends_at),
    PurgeKind.CODES: _create_rule(
        tables.authorization_codes.c.expires_at, lambda code: code.redeemed_at.is_(None), has_partial_index=True
    ),
    PurgeKind.SESSIONS: _create_rule(tables.sessions.c.ends_at),
    PurgeKind.REQUESTS: _create_rule(tables.authorization_requests.c.expires_at),
    PurgeKind.MESSAGES: _create_rule(tables.outgoing_messages.c.expires_at),
    PurgeKind.WEBHOOK_DELIVERIES: _create_rule(tables.webhook_deliveries.c.expires_at),
    PurgeKind.ATTEMPTS: _create_rule(
        tables.attempts.c.counted_at, lambda count: count.next_at < seconds_from_datetime(NO_NEXT_ATTEMPT)
    ),
    PurgeKind.RECORDS: _create_rule(tables.records.c.expires_at),
    PurgeKind.AUDIT_EVENTS: _create_rule(tables.audit_events.c.at),
}


def _not_under_legal_hold(row: Any) -> ColumnElement[bool]:
    """Rows that belong neither to people under a legal hold nor to organizations under one."""
    people = select(tables.users.c.id).where(
        tables.users.c.id == row.user_id, tables.users.c.organization_id.in_(_LEGAL_HOLDS_PARAM)
    )
    return or_(row.user_id.is_(None), and_(row.user_id.not_in(_LEGAL_HOLDS_PARAM), ~people.exists()))


def _event_not_under_legal_hold(event: Any) -> ColumnElement[bool]:
    """Events that name no user or organization under a legal hold."""
    named = (event.organization_id, event.actor_id, event.object_id)
    return and_(*(or_(column.is_(None), column.not_in(_LEGAL_HOLDS_PARAM)) for column in named))


#: Conditions for rows that are not under a legal hold.
_LEGAL_HOLD_CONDITIONS: dict[PurgeKind, Condition] = {
    **dict.fromkeys(LEGAL_HOLD_KINDS, _not_under_legal_hold),
    PurgeKind.AUDIT_EVENTS: _event_not_under_legal_hold,
}
#: By kind, and whether all indexes are whole, as in MariaDB.
_STATEMENTS = {
    (purged, whole): _PurgeStatements(over, whole_index=whole)
    for purged, over in _RULES.items()
    for whole in (False, True)
}
_PURGES_WITH_LEGAL_HOLDS = {
    (purged, whole): _PurgeStatements(_RULES[purged].with_condition(by_column), whole_index=whole)
    for purged, by_column in _LEGAL_HOLD_CONDITIONS.items()
    for whole in (False, True)
}
_COUNTS = {
    purged: _count_rows(select(*over.table.primary_key).limit(bindparam("limit"))) for purged, over in _RULES.items()
}
_ADVANCE_AUDIT_FLOOR = upsert(
    tables.audit_floor, index_elements=[tables.audit_floor.c.id], update_columns=[tables.audit_floor.c.kept_since]
)


class SqlPurgeStore(SqlStore, PurgeStore):
    """A search for each kind, and a deletion by key; dependent rows are deleted by foreign keys."""

    def find_candidates(
        self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = (), cursor: Any = None
    ) -> PurgeCandidates:
        statements, values = self._bind(kind, before, legal_holds)
        position = statements.first_cursor if cursor is None else cursor
        values |= {**statements.bind_cursor(position), "looked_at": limit, "limit": limit}
        rows = self._fetch_all(statements.find, values)
        # Cursors hold stored values: they need not be valid timestamps.
        width = len(position)
        if statements.is_joined:
            keys = [_key_value(row[width:]) for row in rows if row[width] is not None]
            # Not all rows that depend on the scanned ones may have been found: the rest is found once these are
            # deleted.
            behind = position if keys else max((tuple(row[:width]) for row in rows), default=position)
        else:
            keys = [_key_value(row[1:width]) for row in rows if row[width]]
            behind = tuple(rows[-1][:width]) if rows else position
        return PurgeCandidates(keys, behind if len(rows) == limit else None)

    def delete(
        self, kind: PurgeKind, keys: Sequence[Any], before: datetime, *, legal_holds: Collection[str] = ()
    ) -> int:
        if not keys:
            return 0
        statements, values = self._bind(kind, before, legal_holds)
        if kind is PurgeKind.AUDIT_EVENTS:
            # The database itself refuses to delete newer events.
            self._execute(_ADVANCE_AUDIT_FLOOR, {"id": 1, "kept_since": seconds_from_datetime(before)})
        values["keys"] = list(keys)
        if self._connection.is_sqlite:
            return self._execute(statements.delete, values)
        ours = [_key_value(row) for row in self._fetch_all(statements.lock, values)]
        return self._execute(statements.delete_locked, {"keys": ours}) if ours else 0

    def count_expired(self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = ()) -> int:
        statements, values = self._bind(kind, before, legal_holds)
        values |= {**statements.bind_cursor(statements.first_cursor), "looked_at": _SCAN_FACTOR * limit, "limit": limit}
        row = self._fetch_one(statements.count, values)
        return 0 if row is None else int(row[0])

    def count_stored(self, kind: PurgeKind, limit: int) -> int:
        row = self._fetch_one(_COUNTS[kind], {"limit": limit})
        count = 0 if row is None else int(row[0])
        if count < limit:
            return count
        row = self._fetch_one(text(row_count_statement(self._connection.dialect.name, _RULES[kind].table.name)), {})
        return count if row is None else max(count, int(row[0] or 0))

    def _bind(
        self, purged: PurgeKind, before: datetime, legal_holds: Collection[str]
    ) -> tuple[_PurgeStatements, dict[str, Any]]:
        values: Values = {"before": seconds_from_datetime(before)}
        kind = purged, self._connection.dialect.name == MARIADB
        if legal_holds and purged in LEGAL_HOLD_KINDS:
            return _PURGES_WITH_LEGAL_HOLDS[kind], {**values, "held": list(legal_holds)}
        return _STATEMENTS[kind], dict(values)


def _key_value(row: Sequence[Any]) -> Any:
    """One value, or a tuple, as ``keys`` expects."""
    return row[0] if len(row) == 1 else tuple(row)
