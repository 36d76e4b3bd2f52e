"""Sealed values in SQL."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    LargeBinary,
    Select,
    Subquery,
    Table,
    Update,
    and_,
    bindparam,
    case,
    func,
    select,
    tuple_,
    update,
)

from identity.plugins.sql import tables
from identity.plugins.sql.row_mapping import Values
from identity.plugins.sql.sql_store import SqlStore
from identity.storage.stores.sealed_values import (
    PrimaryKey,
    SealedValue,
    SealedValueBatch,
    SealedValueKind,
    SealedValueStore,
)


@dataclass(frozen=True)
class _SealedValueStatements:
    first: Select[Any]
    following: Select[Any]
    replace: Update

    @classmethod
    def for_column(cls, column: Column[Any]) -> "_SealedValueStatements":
        table: Table = column.table
        keys = list(table.primary_key)
        key_parameters = [bindparam(f"key_{at}", type_=key.type) for at, key in enumerate(keys)]
        this = and_(*(key == value for key, value in zip(keys, key_parameters, strict=True)))
        next_ones = select(*keys, column).order_by(*keys).limit(bindparam("limit"))
        return cls(
            _other_prefix_select(next_ones.subquery(), column),
            _other_prefix_select(next_ones.where(tuple_(*keys) > tuple_(*key_parameters)).subquery(), column),
            update(table)
            .where(this, column == bindparam("before", type_=LargeBinary()))
            .values({column: bindparam("now", type_=LargeBinary())}),
        )


def _other_prefix_select(batch: Subquery, column: Column[Any]) -> Select[Any]:
    """The keys of all scanned rows, each with its value if that is sealed and has another prefix."""
    sealed, keys = batch.c[column.key], [batch.c[key.key] for key in column.table.primary_key]
    length: BindParameter[int] = bindparam("length")
    other = func.substr(sealed, 1, length, type_=LargeBinary()) != bindparam("beginning", type_=LargeBinary())
    return select(*keys, case((and_(func.length(sealed) > 0, other), sealed), else_=None)).order_by(*keys)


_STATEMENTS = {
    SealedValueKind.UPSTREAM_SECRETS: _SealedValueStatements.for_column(tables.upstream_providers.c.secret),
    SealedValueKind.WEBHOOK_SECRETS: _SealedValueStatements.for_column(tables.webhooks.c.secret),
    SealedValueKind.MESSAGES: _SealedValueStatements.for_column(tables.outgoing_messages.c.sealed),
    SealedValueKind.RECORDS: _SealedValueStatements.for_column(tables.records.c.sealed),
}


class SqlSealedValueStore(SqlStore, SealedValueStore):
    """Scans by primary key, so that tables of any size take batches of equal cost."""

    def list_with_other_prefix(
        self, kind: SealedValueKind, active_prefix: bytes, limit: int, *, cursor: PrimaryKey | None = None
    ) -> SealedValueBatch:
        statements = _STATEMENTS[kind]
        parameters: Values = {"length": len(active_prefix), "beginning": active_prefix, "limit": limit}
        if cursor is None:
            rows = self._fetch_all(statements.first, parameters)
        else:
            rows = self._fetch_all(statements.following, {**parameters, **_key_parameters(cursor)})
        values = [SealedValue(tuple(row[:-1]), row[-1]) for row in rows if row[-1] is not None]
        return SealedValueBatch(values, tuple(rows[-1][:-1]) if len(rows) == limit else None)

    def replace(self, kind: SealedValueKind, value: SealedValue, sealed: bytes) -> bool:
        parameters = {**_key_parameters(value.key), "before": value.sealed, "now": sealed}
        return self._execute(_STATEMENTS[kind].replace, parameters) == 1


def _key_parameters(key: PrimaryKey) -> Values:
    return {f"key_{at}": part for at, part in enumerate(key)}
