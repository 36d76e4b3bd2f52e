"""Pages of a list: a stable order, a cursor after the last row, no offsets and no totals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")

MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page starts: after the row with this sort value and, among equals, this id."""

    value: str
    id: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page is wanted: up to ``limit`` rows after ``cursor``, starting with ``query`` if given.

    ``active`` narrows to rows in that state where rows have one.
    """

    limit: int = 50
    cursor: Cursor | None = None
    query: str = ""
    active: bool | None = None


FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursor of the next page, None on the last one."""

    items: tuple[Row, ...]
    next: Cursor | None = None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def page_of(rows: list[Row], limit: int, cursor: Callable[[Row], Cursor]) -> Page[Row]:
    """Make a page from up to ``limit + 1`` rows: the surplus row tells that there is a next page."""
    if len(rows) <= limit:
        return Page(tuple(rows))
    shown = rows[:limit]
    return Page(tuple(shown), cursor(shown[-1]))


def every_row(fetch: Callable[[PageRequest], Page[Row]]) -> Iterator[Row]:
    """Walk through all pages of a list, one page in memory at a time."""
    request = PageRequest(limit=MAX_PAGE)
    while True:
        page = fetch(request)
        yield from page.items
        if page.next is None:
            return
        request = PageRequest(limit=MAX_PAGE, cursor=page.next)
