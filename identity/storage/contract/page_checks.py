"""Checks of lists: stable order, each row once, the end known."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from identity.storage.paging import PageCursor, PageRequest, ResultPage, RowTotal, SortKeys, SortOrder

Row = TypeVar("Row")
Fetch = Callable[[PageRequest], ResultPage[Row]]


def walk_pages(
    fetch: Fetch[Row],
    *,
    limit: int,
    cursor: PageCursor | None = None,
    query: str = "",
    active: bool | None = None,
    sort: SortOrder | None = None,
) -> list[Row]:
    """All rows after the cursor, page by page."""
    rows: list[Row] = []
    for _ in range(1000):
        page = fetch(PageRequest(limit=limit, cursor=cursor, query=query, active=active, sort=sort))
        assert len(page) <= limit, f"a page of at most {limit} rows was asked for"
        rows.extend(page.items)
        if page.next_cursor is None:
            return rows
        assert page.items, "an empty page cannot have a next one"
        assert page.next_cursor != cursor, "the cursor does not move"
        cursor = page.next_cursor
    raise AssertionError("the pages do not end")


def check_order(fetch: Fetch[Row], expected: Sequence[Any]) -> None:
    """Check that the list has these rows in this order, whatever the page size."""
    for limit in (1, 2, 3, len(expected) + 1, 1000):
        assert walk_pages(fetch, limit=limit) == list(expected), f"wrong rows or order with pages of {limit}"
    if expected:
        last = fetch(PageRequest(limit=len(expected)))
        assert last == ResultPage(tuple(expected)), "a full last page has no next one"


def check_ties(fetch: Fetch[Row], rows: Collection[Any]) -> None:
    """Check that rows with equal sort values come in one stable order, each once, whatever the page size."""
    whole = walk_pages(fetch, limit=1000)
    assert len(whole) == len(rows), "every row once"
    assert all(row in whole for row in rows), "every row once"
    for limit in (1, 2, 3):
        assert walk_pages(fetch, limit=limit) == whole, f"rows with equal sort values move with pages of {limit}"


def check_insertion(fetch: Fetch[Row], insert: Callable[[], object], before: Sequence[Any]) -> None:
    """Check that rows inserted between two pages, anywhere in the order, neither repeat nor hide another row."""
    first = fetch(PageRequest(limit=2))
    insert()
    rows_found = [*first.items, *walk_pages(fetch, limit=2, cursor=first.next_cursor)]
    for row in before:
        assert rows_found.count(row) == 1, (
            f"a row inserted between pages made this one appear {rows_found.count(row)} times: {row}"
        )


def check_removal(fetch: Fetch[Row], remove: Callable[[Row], object], expected: Sequence[Any]) -> None:
    """Check that paging continues after a row that is deleted before the next page is requested."""
    first = fetch(PageRequest(limit=2))
    remove(first.items[-1])
    assert walk_pages(fetch, limit=2, cursor=first.next_cursor) == list(expected[2:]), (
        "the row at the cursor was removed"
    )


def check_active(fetch: Fetch[Row], *, active: Collection[Any], inactive: Collection[Any]) -> None:
    """Check that ``active`` filters rows by state; without it all rows are listed."""
    for state, expected in ((True, list(active)), (False, list(inactive)), (None, [*active, *inactive])):
        rows = walk_pages(fetch, limit=1, active=state)
        assert len(rows) == len(expected), f"active={state}"
        assert all(row in rows for row in expected), f"active={state}"


def check_query(fetch: Fetch[Row], query: str, expected: Collection[Any]) -> None:
    """Check that the list filtered by ``query`` has just these rows, also page by page."""
    rows = walk_pages(fetch, limit=1, query=query)
    assert len(rows) == len(expected), f"query {query!r} found {rows}"
    assert all(row in rows for row in expected), f"query {query!r} found {rows}"
    total = fetch(PageRequest(limit=1, query=query, with_total=True)).total
    assert total == RowTotal(len(expected)), f"query {query!r} was counted wrong"


def check_sorts(fetch: Fetch[Any], orders: SortKeys[Any], query: str) -> None:
    """Check that the list can be sorted by each key in both directions; ``query`` must match all rows."""
    rows = walk_pages(fetch, limit=1000)
    assert len(rows) > 1, "too few rows for an order"
    for sort_key, value in orders.items():
        ordered = sorted(rows, key=lambda row: (value(row), row.id))
        for sort in (SortOrder(sort_key), SortOrder(sort_key, descending=True)):
            expected = ordered[::-1] if sort.descending else ordered
            for limit in (1, 2, len(rows)):
                for searched in ("", query):
                    assert walk_pages(fetch, limit=limit, sort=sort, query=searched) == expected, (
                        f"{sort}, pages of {limit}"
                    )


def check_totals(fetch: Fetch[Any], *, rows: int, active: int) -> None:
    """Check that the total covers all pages, is on each of them, in each state, and is only counted on request."""
    for state, expected in ((None, rows), (True, active), (False, rows - active)):
        page = fetch(PageRequest(limit=1, active=state, with_total=True))
        assert page.total == RowTotal(expected), f"active={state}"
        if page.next_cursor is not None:
            following = PageRequest(limit=1, active=state, with_total=True, cursor=page.next_cursor)
            assert fetch(following).total == RowTotal(expected), f"active={state}, second page"
    assert fetch(PageRequest(limit=1)).total is None
