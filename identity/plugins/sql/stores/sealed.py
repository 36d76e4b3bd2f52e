"""What lies sealed, in SQL."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    LargeBinary,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    func,
    select,
    tuple_,
    update,
)

from identity.plugins.sql import tables
from identity.plugins.sql.mapping import Values
from identity.plugins.sql.rows import SqlStore
from identity.storage.stores.sealed import Key, Sealed, SealedStore, SealedValue


@dataclass(frozen=True)
class _Statements:
    first: Select[Any]
    following: Select[Any]
    replace: Update

    @classmethod
    def of(cls, column: Column[Any]) -> "_Statements":
        table: Table = column.table
        keys = list(table.primary_key)
        length: BindParameter[int] = bindparam("length")
        other = func.substr(column, 1, length, type_=LargeBinary()) != bindparam("beginning", type_=LargeBinary())
        found = select(*keys, column).where(func.length(column) > 0, other).order_by(*keys).limit(bindparam("limit"))
        given = [bindparam(f"key_{at}", type_=key.type) for at, key in enumerate(keys)]
        this = and_(*(key == value for key, value in zip(keys, given, strict=True)))
        return cls(
            found,
            found.where(tuple_(*keys) > tuple_(*given)),
            update(table)
            .where(this, column == bindparam("before", type_=LargeBinary()))
            .values({column: bindparam("now", type_=LargeBinary())}),
        )


_STATEMENTS = {
    Sealed.UPSTREAM_SECRETS: _Statements.of(tables.upstream_providers.c.secret),
    Sealed.MESSAGES: _Statements.of(tables.outgoing_messages.c.sealed),
    Sealed.RECORDS: _Statements.of(tables.records.c.sealed),
}


class SqlSealedStore(SqlStore, SealedStore):
    """In the order of primary keys, which leads through a table of any size."""

    def others(self, kind: Sealed, beginning: bytes, limit: int, *, after: Key | None = None) -> list[SealedValue]:
        statements = _STATEMENTS[kind]
        parameters: Values = {"length": len(beginning), "beginning": beginning, "limit": limit}
        if after is None:
            rows = self._all(statements.first, parameters)
        else:
            rows = self._all(statements.following, {**parameters, **_named(after)})
        return [SealedValue(tuple(row[:-1]), row[-1]) for row in rows]

    def replace(self, kind: Sealed, value: SealedValue, sealed: bytes) -> bool:
        parameters = {**_named(value.key), "before": value.sealed, "now": sealed}
        return self._change(_STATEMENTS[kind].replace, parameters) == 1


def _named(key: Key) -> Values:
    return {f"key_{at}": part for at, part in enumerate(key)}
