"""Pages of a list: a stable order, a cursor after the last row, no offsets, and totals that are counted only so far."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from identity.domain.search import Searched, is_found

Row = TypeVar("Row")
Shown = TypeVar("Shown")


class Identified(Protocol):
    """A row that has an id."""

    @property
    def id(self) -> str:
        """The row's key."""


IdentifiedRow = TypeVar("IdentifiedRow", bound=Identified)
SearchedRow = TypeVar("SearchedRow", bound=Searched)

MAX_PAGE = 1000

#: So many rows are counted, and no more: whoever has more is told so.
MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page starts: after the row with this sort value and, among equals, this id."""

    value: str
    id: str


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of a list: one of the names that the list's store offers, and which way."""

    by: str
    descending: bool = False


#: What a list can be sorted by: by its name, the value of a row, as a text that sorts as it does.
Orders = Mapping[str, Callable[[IdentifiedRow], str]]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page is wanted: up to ``limit`` rows after ``cursor``, of those that ``query`` finds.

    ``active`` narrows to rows in that state where rows have one. ``sort`` is None for the list's usual order; a cursor
    is good for the order in which it was made. ``counted`` asks for the total.
    """

    limit: int = 50
    cursor: Cursor | None = None
    query: str = ""
    active: bool | None = None
    sort: Sort | None = None
    counted: bool = False


FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True)
class Total:
    """How many rows there are on all pages; of more than 1,000 only that."""

    count: int
    exact: bool = True

    @classmethod
    def of(cls, found: int) -> "Total":
        """The total where counting stopped after MOST_COUNTED + 1."""
        return cls(min(found, MOST_COUNTED), found <= MOST_COUNTED)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursor of the next page, None on the last one. ``total`` is None where nobody counted."""

    items: tuple[Row, ...]
    next: Cursor | None = None
    total: Total | None = None

    def showing(self, items: Iterable[Shown]) -> "Page[Shown]":
        """The same page with something else in place of its rows."""
        return Page(tuple(items), self.next, self.total)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def page_of(rows: list[Row], limit: int, cursor: Callable[[Row], Cursor], total: Total | None = None) -> Page[Row]:
    """Make a page from up to ``limit + 1`` rows: the surplus row tells that there is a next page."""
    if len(rows) <= limit:
        return Page(tuple(rows), total=total)
    shown = rows[:limit]
    return Page(tuple(shown), cursor(shown[-1]), total)


def every_row(fetch: Callable[[PageRequest], Page[Row]], request: PageRequest = FIRST_PAGE) -> Iterator[Row]:
    """Walk through all pages of a list, one page in memory at a time."""
    request = replace(request, limit=MAX_PAGE)
    while True:
        page = fetch(request)
        yield from page.items
        if page.next is None:
            return
        request = replace(request, cursor=page.next)


def page_sorted(
    rows: Iterable[IdentifiedRow],
    request: PageRequest,
    orders: Orders[IdentifiedRow],
    *,
    usual: Sort | None = None,
) -> Page[IdentifiedRow]:
    """A page of rows that lie in memory, in one of the orders, then in that of their ids; usually in the first."""
    sort = request.sort or usual or Sort(next(iter(orders)))
    value = orders[sort.by]

    def place(row: IdentifiedRow) -> tuple[str, str]:
        return value(row), row.id

    found = [row for row in rows if request.active is None or getattr(row, "active", request.active) == request.active]
    total = Total.of(min(len(found), MOST_COUNTED + 1)) if request.counted else None
    found.sort(key=place, reverse=sort.descending)
    if request.cursor is not None:
        here = (request.cursor.value, request.cursor.id)
        found = [row for row in found if (place(row) < here if sort.descending else place(row) > here)]
    return page_of(found[: request.limit + 1], request.limit, lambda row: Cursor(*place(row)), total)


def only_page(rows: Iterable[SearchedRow], request: PageRequest, orders: Orders[SearchedRow]) -> Page[SearchedRow]:
    """All that the request asks for of a few rows that lie in memory, on one page."""
    found = [row for row in rows if is_found(request.query, row)]
    return page_sorted(found, replace(request, limit=len(found), cursor=None), orders)


def in_order(moment: datetime | None) -> str:
    """A moment as a text that sorts as moments do: in UTC and whole seconds ISO 8601 does; none is before all."""
    return "" if moment is None else moment.isoformat()
