"""What all stores do alike, in memory."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeVar

from identity.storage.errors import Stale
from identity.storage.memory.tables import Table, Tables
from identity.storage.paging import Identified, Page, PageRequest, Sort, in_order, page_sorted
from identity.storage.stores.entity import Entity, EntityStore, Kept


class MemoryStore:
    """Looks at all tables as one transaction sees them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables


class MemoryEntityStore(MemoryStore, EntityStore[Kept]):
    """Rows by id, in the table of this name."""

    table: ClassVar[str]

    @property
    def _rows(self) -> Table[str, Kept]:
        table: Table[str, Kept] = getattr(self._tables, self.table)
        return table

    def add(self, value: Kept) -> None:
        self._rows.insert({value.id: value})

    def find(self, id: str) -> Kept | None:  # noqa: A002
        return self._rows.find(id)

    def find_many(self, ids: Collection[str]) -> Mapping[str, Kept]:
        return self._rows.find_many(ids)

    def update(self, value: Kept) -> None:
        update(self._rows, value)

    def remove(self, id: str) -> None:  # noqa: A002
        self._rows.delete(id)


EntityRow = TypeVar("EntityRow", bound=Entity)


def update(table: Table[str, EntityRow], row: EntityRow) -> None:
    """Replace the row by its next version. Raises Missing, or Stale if another version follows the stored one."""
    if row.version != table.get(row.id).version + 1:
        raise Stale(row.id)
    table.replace(row.id, row)


class Dated(Identified, Protocol):
    """A row that knows when it was made."""

    @property
    def created_at(self) -> datetime:
        """When the row was made."""


DatedRow = TypeVar("DatedRow", bound=Dated)


def page_newest_first(rows: Iterable[DatedRow], request: PageRequest) -> Page[DatedRow]:
    """A page of the rows, the latest made first."""
    orders = {"created_at": lambda row: in_order(row.created_at)}
    return page_sorted(rows, request, orders, usual=Sort("created_at", descending=True))


def oldest_first(rows: Iterable[DatedRow]) -> tuple[DatedRow, ...]:
    """The rows, the earliest made first."""
    return tuple(sorted(rows, key=lambda row: (row.created_at, row.id)))


def touch(table: Table[Any, Any], uses: Mapping[str, datetime]) -> None:
    """Move ``last_used_at`` of the rows with these ids forward, never back."""
    for key, row in tuple(table.rows.items()):
        move_forward(table, key, "last_used_at", uses.get(row.id))


def move_forward(table: Table[Any, Any], key: Any, name: str, at: datetime | None) -> None:
    """Set a moment of the row, if there is one, unless it is there or past it already."""
    row = table.find(key)
    if row is not None and at is not None and (getattr(row, name) is None or getattr(row, name) < at):
        table.put(key, replace(row, **{name: at}))
