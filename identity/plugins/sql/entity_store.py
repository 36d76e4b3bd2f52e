"""Base class of SQL entity stores."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Select, Table, bindparam, delete, or_, select, true

from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.paging import PagedSqlStore, merge_first_rows
from identity.plugins.sql.row_mapping import MappedTable, memoized
from identity.plugins.sql.sql_store import versioned_update
from identity.plugins.sql.statements import CompiledStatement
from identity.storage.stores.entity_store import EntityStore, EntityT


class EntityTable(MappedTable[EntityT]):
    """A mapped table with the statements for rows by id. The same few rows are read with every token: values of
    recently read rows are cached."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.from_row = memoized(self.from_row)
        self.by_id = CompiledStatement(self.select.where(table.c.id == bindparam("key")))
        self.versioned = versioned_update(table)

    def lock(self, id_: str) -> Select[Any]:
        """Locks the row; rows that refer to it can be inserted without waiting."""
        return select(self.table.c.id).where(self.table.c.id == id_).with_for_update(key_share=True)


class SqlEntityStore(PagedSqlStore, EntityStore[EntityT]):
    """One row each; dependent rows are deleted by foreign keys."""

    entity_table: ClassVar[EntityTable[Any]]

    def add(self, value: EntityT) -> None:
        self._execute_in_savepoint(self.entity_table.insert, self.entity_table.to_row(value))

    def find(self, id: str) -> EntityT | None:
        return self._fetch_value(self.entity_table.from_row, self.entity_table.by_id, {"key": id})

    def find_many(self, ids: Collection[str]) -> Mapping[str, EntityT]:
        rows = self.entity_table
        found = self._fetch_values_by_id(rows.select, rows.table.c.id, ids, rows.from_row)
        return {item.id: item for item in found}

    def update(self, value: EntityT) -> None:
        self._update_versioned(self.entity_table.versioned, self.entity_table.to_row(value))

    def delete(self, id: str) -> None:
        table = self.entity_table.table
        self._execute_for_one(delete(table).where(table.c.id == id))

    def _list_ending(
        self, after: datetime | None, until: datetime, limit: int, *scopes: ColumnElement[bool]
    ) -> tuple[Any, ...]:
        """The entities that end at ``until`` at the latest and after ``after``, soonest first: all, or those within one
        of the scopes, each with an index of its own."""
        rows, column = self.entity_table, self.entity_table.table.c.until
        statement = rows.select.where(column <= seconds_from_datetime(until))
        if after is not None:
            statement = statement.where(column > seconds_from_datetime(after))
        arms = [statement.where(scope) for scope in scopes or (true(),)]
        return self._fetch_values(rows.from_row, merge_first_rows(arms, (column, rows.table.c.id), limit))


def has_not_ended(table: Table) -> ColumnElement[bool]:
    """True for rows of the table without an end, and before it; the moment is the parameter ``now``."""
    return or_(table.c.until.is_(None), table.c.until > bindparam("now"))
