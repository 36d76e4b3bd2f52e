"""Pages of a list: a stable order, keyset cursors instead of offsets, and totals counted up to a limit."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from identity.domain.search import Searchable, matches_query

RowT = TypeVar("RowT")
ItemT = TypeVar("ItemT")


class Identified(Protocol):
    @property
    def id(self) -> str:
        """The primary key."""


IdentifiedRowT = TypeVar("IdentifiedRowT", bound=Identified)
SearchableRowT = TypeVar("SearchableRowT", bound=Searchable)

MAX_PAGE_ROWS = 1000

#: Totals are counted up to this number.
MAX_COUNTED_ROWS = 1000


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Start of the next page: after the row with this sort value and, among equals, this id."""

    value: str
    id: str


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Sort key, one of those the list's store offers, and direction."""

    key: str
    descending: bool = False


#: Sort keys of a list: each returns a string that sorts as the value does.
SortKeys = Mapping[str, Callable[[IdentifiedRowT], str]]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A requested page: up to ``limit`` rows after ``cursor``, of those that match ``query``. ``active`` filters by
    state where rows have one. ``sort`` None is the list's default order; a cursor is valid only for the order in which
    it was made. ``with_total`` requests the total."""

    limit: int = 50
    cursor: PageCursor | None = None
    query: str = ""
    active: bool | None = None
    sort: SortOrder | None = None
    with_total: bool = False


FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True)
class RowTotal:
    """Number of rows on all pages; exact up to 1,000."""

    count: int
    is_exact: bool = True

    @classmethod
    def from_count(cls, found: int) -> "RowTotal":
        """The total after counting up to MAX_COUNTED_ROWS + 1."""
        return cls(min(found, MAX_COUNTED_ROWS), found <= MAX_COUNTED_ROWS)


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[RowT]):
    """Rows, and the cursor of the next page, None on the last one. ``total`` is None unless requested."""

    items: tuple[RowT, ...]
    next_cursor: PageCursor | None = None
    total: RowTotal | None = None

    def with_items(self, items: Iterable[ItemT]) -> "ResultPage[ItemT]":
        """The same page with other items."""
        return ResultPage(tuple(items), self.next_cursor, self.total)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def build_page(
    rows: list[RowT], limit: int, cursor: Callable[[RowT], PageCursor], total: RowTotal | None = None
) -> ResultPage[RowT]:
    """Build a page from up to ``limit + 1`` rows: an extra row means that there is a next page."""
    if len(rows) <= limit:
        return ResultPage(tuple(rows), total=total)
    page_rows = rows[:limit]
    return ResultPage(tuple(page_rows), cursor(page_rows[-1]), total)


def iterate_rows(fetch: Callable[[PageRequest], ResultPage[RowT]], request: PageRequest = FIRST_PAGE) -> Iterator[RowT]:
    """All rows of a list, reading page by page."""
    request = replace(request, limit=MAX_PAGE_ROWS)
    while True:
        page = fetch(request)
        yield from page.items
        if page.next_cursor is None:
            return
        request = replace(request, cursor=page.next_cursor)


def page_in_memory(
    rows: Iterable[IdentifiedRowT],
    request: PageRequest,
    orders: SortKeys[IdentifiedRowT],
    *,
    usual: SortOrder | None = None,
) -> ResultPage[IdentifiedRowT]:
    """A page of rows in memory, sorted by the requested key, by default the first one, and then by id."""
    sort = request.sort or usual or SortOrder(next(iter(orders)))
    value = orders[sort.key]

    def position(row: IdentifiedRowT) -> tuple[str, str]:
        return value(row), row.id

    found = [row for row in rows if request.active is None or getattr(row, "active", request.active) == request.active]
    total = RowTotal.from_count(min(len(found), MAX_COUNTED_ROWS + 1)) if request.with_total else None
    found.sort(key=position, reverse=sort.descending)
    if request.cursor is not None:
        after = (request.cursor.value, request.cursor.id)
        found = [row for row in found if (position(row) < after if sort.descending else position(row) > after)]
    return build_page(found[: request.limit + 1], request.limit, lambda row: PageCursor(*position(row)), total)


def search_in_memory(
    rows: Iterable[SearchableRowT], request: PageRequest, orders: SortKeys[SearchableRowT]
) -> ResultPage[SearchableRowT]:
    """A page of those rows in memory that match the query."""
    return page_in_memory((row for row in rows if matches_query(request.query, row)), request, orders)


def single_page(
    rows: Collection[SearchableRowT], request: PageRequest, orders: SortKeys[SearchableRowT]
) -> ResultPage[SearchableRowT]:
    """All of a few rows in memory that match the request, on one page."""
    return search_in_memory(rows, replace(request, limit=len(rows), cursor=None), orders)


def sortable_timestamp(moment: datetime | None) -> str:
    """A timestamp as a string that sorts chronologically: UTC in ISO 8601 with whole seconds; None comes first."""
    return "" if moment is None else moment.isoformat()
