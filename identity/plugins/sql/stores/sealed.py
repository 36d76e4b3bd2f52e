"""What lies sealed, in SQL."""

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
from identity.plugins.sql.mapping import Values
from identity.plugins.sql.rows import SqlStore
from identity.storage.stores.sealed import Key, Others, Sealed, SealedStore, SealedValue


@dataclass(frozen=True)
class _Statements:
    first: Select[Any]
    following: Select[Any]
    replace: Update

    @classmethod
    def of(cls, column: Column[Any]) -> "_Statements":
        table: Table = column.table
        keys = list(table.primary_key)
        given = [bindparam(f"key_{at}", type_=key.type) for at, key in enumerate(keys)]
        this = and_(*(key == value for key, value in zip(keys, given, strict=True)))
        next_ones = select(*keys, column).order_by(*keys).limit(bindparam("limit"))
        return cls(
            _others(next_ones.subquery(), column),
            _others(next_ones.where(tuple_(*keys) > tuple_(*given)).subquery(), column),
            update(table)
            .where(this, column == bindparam("before", type_=LargeBinary()))
            .values({column: bindparam("now", type_=LargeBinary())}),
        )


def _others(seen: Subquery, column: Column[Any]) -> Select[Any]:
    """The keys of all that are looked at, each with its value if that is sealed and does not begin so."""
    sealed, keys = seen.c[column.key], [seen.c[key.key] for key in column.table.primary_key]
    length: BindParameter[int] = bindparam("length")
    other = func.substr(sealed, 1, length, type_=LargeBinary()) != bindparam("beginning", type_=LargeBinary())
    return select(*keys, case((and_(func.length(sealed) > 0, other), sealed), else_=None)).order_by(*keys)


_STATEMENTS = {
    Sealed.UPSTREAM_SECRETS: _Statements.of(tables.upstream_providers.c.secret),
    Sealed.MESSAGES: _Statements.of(tables.outgoing_messages.c.sealed),
    Sealed.RECORDS: _Statements.of(tables.records.c.sealed),
}


class SqlSealedStore(SqlStore, SealedStore):
    """In the order of primary keys, which leads through a table of any size."""

    def others(self, kind: Sealed, beginning: bytes, limit: int, *, after: Key | None = None) -> Others:
        statements = _STATEMENTS[kind]
        parameters: Values = {"length": len(beginning), "beginning": beginning, "limit": limit}
        if after is None:
            rows = self._all(statements.first, parameters)
        else:
            rows = self._all(statements.following, {**parameters, **_named(after)})
        values = [SealedValue(tuple(row[:-1]), row[-1]) for row in rows if row[-1] is not None]
        return Others(values, tuple(rows[-1][:-1]) if len(rows) == limit else None)

    def replace(self, kind: Sealed, value: SealedValue, sealed: bytes) -> bool:
        parameters = {**_named(value.key), "before": value.sealed, "now": sealed}
        return self._change(_STATEMENTS[kind].replace, parameters) == 1


def _named(key: Key) -> Values:
    return {f"key_{at}": part for at, part in enumerate(key)}
