"""What all stores of entities do alike, in SQL."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from sqlalchemy import Table, bindparam, delete, select

from identity.plugins.sql.mapping import Mapped, remembering
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import find_by_id, find_many_by_id, versioned
from identity.plugins.sql.statements import CompiledStatement
from identity.storage.stores.entity import EntityStore, Kept


class Entities(Mapped[Kept]):
    """A mapped table with the statements for rows by id.

    The same few rows are read with every token: what one was made of lately is not made of it again.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.of = remembering(self.of)
        self.by_id = CompiledStatement(find_by_id(table, self.columns))
        self.by_ids = find_many_by_id(table, self.columns)
        self.versioned = versioned(table)
        self.delete = delete(table).where(table.c.id == bindparam("key"))
        #: What refers to the row may be made meanwhile: that does not wait for this.
        self.lock = select(table.c.id).where(table.c.id == bindparam("key")).with_for_update(key_share=True)


class SqlEntityStore(PagedStore, EntityStore[Kept]):
    """One row each; what belongs to it goes by foreign keys."""

    rows: ClassVar[Entities[Any]]

    def add(self, value: Kept) -> None:
        self._try(self.rows.insert, self.rows.values(value))

    def find(self, id: str) -> Kept | None:  # noqa: A002
        return self._find(self.rows.of, self.rows.by_id, {"key": id})

    def find_many(self, ids: Collection[str]) -> Mapping[str, Kept]:
        return {each.id: each for each in self._many(self.rows.by_ids, ids, self.rows.of)}

    def update(self, value: Kept) -> None:
        self._replace(self.rows.versioned, self.rows.values(value))

    def remove(self, id: str) -> None:  # noqa: A002
        self._touch_one(self.rows.delete, {"key": id})
