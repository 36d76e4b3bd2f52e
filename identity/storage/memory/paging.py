"""Pages of rows that lie in memory."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from identity.domain.names import name_key
from identity.storage.paging import Cursor, Page, PageRequest, page_of


class Identified(Protocol):
    """A row that has an id."""

    @property
    def id(self) -> str:
        """The row's key."""


class Dated(Identified, Protocol):
    """A row that knows when it was made."""

    @property
    def created_at(self) -> datetime:
        """When the row was made."""


Row = TypeVar("Row", bound=Identified)
DatedRow = TypeVar("DatedRow", bound=Dated)


def page_by_name(rows: Iterable[Row], request: PageRequest, name: Callable[[Row], str]) -> Page[Row]:
    """A page of the rows in the order of their names, as name_key compares them, then of their ids."""

    def cursor(row: Row) -> Cursor:
        return Cursor(name_key(name(row)), row.id)

    found = [row for row in rows if _in_state(row, request)]
    if request.cursor is not None:
        found = [row for row in found if _place(cursor(row)) > _place(request.cursor)]
    found.sort(key=lambda row: _place(cursor(row)))
    return page_of(found[: request.limit + 1], request.limit, cursor)


def page_newest_first(rows: Iterable[DatedRow], request: PageRequest) -> Page[DatedRow]:
    """A page of the rows, the latest made first."""
    # Moments in UTC and whole seconds sort as their ISO 8601 form does.
    return page_descending(rows, request, lambda row: row.created_at.isoformat())


def page_descending(rows: Iterable[Row], request: PageRequest, value: Callable[[Row], str]) -> Page[Row]:
    """A page of the rows, those with the greatest value (then id) first."""

    def cursor(row: Row) -> Cursor:
        return Cursor(value(row), row.id)

    found = [row for row in rows if _in_state(row, request)]
    if request.cursor is not None:
        found = [row for row in found if _place(cursor(row)) < _place(request.cursor)]
    found.sort(key=lambda row: _place(cursor(row)), reverse=True)
    return page_of(found[: request.limit + 1], request.limit, cursor)


def starts_with(text: str, query: str) -> bool:
    """True if the text starts with the query as name_key compares them."""
    return name_key(text).startswith(name_key(query))


def _place(cursor: Cursor) -> tuple[str, str]:
    return cursor.value, cursor.id


def _in_state(row: object, request: PageRequest) -> bool:
    return request.active is None or getattr(row, "active", request.active) == request.active
