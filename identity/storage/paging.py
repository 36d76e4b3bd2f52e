"""Pages of a list: a stable order, a cursor after the last row, no offsets, and totals that are counted only so far."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from identity.domain.search import Searchable, matches_query

RowT = TypeVar("RowT")
ItemT = TypeVar("ItemT")


class Identified(Protocol):
    """A row that has an id."""

    @property
    def id(self) -> str:
        """The row's key."""


IdentifiedRowT = TypeVar("IdentifiedRowT", bound=Identified)
SearchableRowT = TypeVar("SearchableRowT", bound=Searchable)

MAX_PAGE_ROWS = 1000

#: So many rows are counted, and no more: whoever has more is told so.
MAX_COUNTED_ROWS = 1000


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Where the next page starts: after the row with this sort value and, among equals, this id."""

    value: str
    id: str


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order of a list: one of the names that the list's store offers, and which way."""

    key: str
    descending: bool = False


#: What a list can be sorted by: by its name, the value of a row, as a text that sorts as it does.
SortKeys = Mapping[str, Callable[[IdentifiedRowT], str]]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page is wanted: up to ``limit`` rows after ``cursor``, of those that ``query`` finds.

    ``active`` narrows to rows in that state where rows have one. ``sort`` is None for the list's usual order; a cursor
    is good for the order in which it was made. ``with_total`` asks for the total.
    """

    limit: int = 50
    cursor: PageCursor | None = None
    query: str = ""
    active: bool | None = None
    sort: SortOrder | None = None
    with_total: bool = False


FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True)
class RowTotal:
    """How many rows there are on all pages; of more than 1,000 only that."""

    count: int
    is_exact: bool = True

    @classmethod
    def from_count(cls, found: int) -> "RowTotal":
        """The total where counting stopped after MOST_COUNTED + 1."""
        return cls(min(found, MAX_COUNTED_ROWS), found <= MAX_COUNTED_ROWS)


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[RowT]):
    """Some rows, and the cursor of the next page, None on the last one. ``total`` is None where nobody counted."""

    items: tuple[RowT, ...]
    next_cursor: PageCursor | None = None
    total: RowTotal | None = None

    def with_items(self, items: Iterable[ItemT]) -> "ResultPage[ItemT]":
        """The same page with something else in place of its rows."""
        return ResultPage(tuple(items), self.next_cursor, self.total)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def build_page(
    rows: list[RowT], limit: int, cursor: Callable[[RowT], PageCursor], total: RowTotal | None = None
) -> ResultPage[RowT]:
    """Make a page from up to ``limit + 1`` rows: the surplus row tells that there is a next page."""
    if len(rows) <= limit:
        return ResultPage(tuple(rows), total=total)
    page_rows = rows[:limit]
    return ResultPage(tuple(page_rows), cursor(page_rows[-1]), total)


def iterate_rows(fetch: Callable[[PageRequest], ResultPage[RowT]], request: PageRequest = FIRST_PAGE) -> Iterator[RowT]:
    """Walk through all pages of a list, one page in memory at a time."""
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
    """A page of rows that lie in memory, in one of the orders, then in that of their ids; usually in the first."""
    sort = request.sort or usual or SortOrder(next(iter(orders)))
    value = orders[sort.key]

    def position(row: IdentifiedRowT) -> tuple[str, str]:
        return value(row), row.id

    identifieds = [
        row for row in rows if request.active is None or getattr(row, "active", request.active) == request.active
    ]
    total = RowTotal.from_count(min(len(identifieds), MAX_COUNTED_ROWS + 1)) if request.with_total else None
    identifieds.sort(key=position, reverse=sort.descending)
    if request.cursor is not None:
        cursor_position = (request.cursor.value, request.cursor.id)
        identifieds = [
            row
            for row in identifieds
            if (position(row) < cursor_position if sort.descending else position(row) > cursor_position)
        ]
    return build_page(identifieds[: request.limit + 1], request.limit, lambda row: PageCursor(*position(row)), total)


def single_page(
    rows: Iterable[SearchableRowT], request: PageRequest, orders: SortKeys[SearchableRowT]
) -> ResultPage[SearchableRowT]:
    """All that the request asks for of a few rows that lie in memory, on one page."""
    searchables = [row for row in rows if matches_query(request.query, row)]
    return page_in_memory(searchables, replace(request, limit=len(searchables), cursor=None), orders)


def sortable_timestamp(moment: datetime | None) -> str:
    """A moment as a text that sorts as moments do: in UTC and whole seconds ISO 8601 does; none is before all."""
    return "" if moment is None else moment.isoformat()
