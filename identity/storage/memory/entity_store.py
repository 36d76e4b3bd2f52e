"""Base classes of the stores in memory."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

from identity.domain.expirations import NEVER
from identity.storage.errors import StaleRow
from identity.storage.memory.tables import MemoryTable, MemoryTables
from identity.storage.paging import Identified, PageRequest, ResultPage, SortOrder, page_in_memory, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore, EntityT, VersionedEntity


class MemoryStore:
    """A store over the tables of one transaction."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables


class MemoryEntityStore(MemoryStore, EntityStore[EntityT]):
    """Rows by id, in one of the tables."""

    def __init__(self, tables: MemoryTables, rows: MemoryTable[str, EntityT]) -> None:
        super().__init__(tables)
        self._rows = rows

    def add(self, value: EntityT) -> None:
        self._rows.insert({value.id: value})

    def find(self, id: str) -> EntityT | None:
        return self._rows.find(id)

    def find_many(self, ids: Collection[str]) -> Mapping[str, EntityT]:
        return self._rows.find_many(ids)

    def update(self, value: EntityT) -> None:
        update_versioned(self._rows, value)

    def delete(self, id: str) -> None:
        self._rows.delete(id)


EntityRowT = TypeVar("EntityRowT", bound=VersionedEntity)


def update_versioned(table: MemoryTable[str, EntityRowT], row: EntityRowT) -> None:
    """Replace the row by its next version. Raises RowNotFound; StaleRow if the version is not the next one."""
    if row.version != table.get(row.id).version + 1:
        raise StaleRow(row.id)
    table.replace(row.id, row)


class Dated(Identified, Protocol):
    """A row with a creation time."""

    @property
    def created_at(self) -> datetime:
        pass


DatedRowT = TypeVar("DatedRowT", bound=Dated)


def page_newest_first(rows: Iterable[DatedRowT], request: PageRequest) -> ResultPage[DatedRowT]:
    """A page of the rows, newest first."""
    orders = {"created_at": lambda row: sortable_timestamp(row.created_at)}
    return page_in_memory(rows, request, orders, usual=SortOrder("created_at", descending=True))


def sort_oldest_first(rows: Iterable[DatedRowT]) -> tuple[DatedRowT, ...]:
    return tuple(sorted(rows, key=lambda row: (row.created_at, row.id)))


class Ending(Identified, Protocol):
    """A row that may end by itself."""

    @property
    def until(self) -> datetime | None:
        pass


EndingRowT = TypeVar("EndingRowT", bound=Ending)


def list_ending(
    rows: Iterable[EndingRowT],
    after: datetime | None,
    until: datetime,
    limit: int,
    is_included: Callable[[EndingRowT], bool] = lambda row: True,
) -> tuple[EndingRowT, ...]:
    """The rows that end at ``until`` at the latest and after ``after``, soonest first."""
    rows = filter(is_included, rows)
    ending = (
        row for row in rows if row.until is not None and row.until <= until and (after is None or row.until > after)
    )
    return tuple(sorted(ending, key=lambda row: (row.until or NEVER, row.id))[:limit])


def update_last_used(table: MemoryTable[Any, Any], uses: Mapping[str, datetime]) -> None:
    """Move ``last_used_at`` of the rows with these ids forward, never back."""
    for key, row in tuple(table.rows.items()):
        advance_timestamp(table, key, "last_used_at", uses.get(row.id))


def advance_timestamp(table: MemoryTable[Any, Any], key: Any, name: str, at: datetime | None) -> None:
    """Set a timestamp of the row, if it exists, unless that would move it back."""
    row = table.find(key)
    if row is not None and at is not None and (getattr(row, name) is None or getattr(row, name) < at):
        table.replace_unchecked(key, replace(row, **{name: at}))
