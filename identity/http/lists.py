"""Lists: which page of a list a request asks for, for the console and the API alike."""

from collections.abc import Collection, Iterable
from typing import Any

from pyramid.request import Request

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.storage.paging import Cursor, Page, PageRequest, Sort, Total

CURSOR, LIMIT, QUERY, STATE, SORT = "cursor", "limit", "q", "state", "sort"

#: Stands before the name of an order that is wanted the other way round.
DESCENDING = "-"

#: How many rows a page has unless the request says otherwise.
USUAL = 50
MOST = 200
LONGEST_QUERY = 200

_STATES = {"": None, "active": True, "deactivated": False}


def sorts(orders: Iterable[str]) -> list[str]:
    """What ``sort`` can be where a list has these orders."""
    return [f"{sign}{by}" for by in orders for sign in ("", DESCENDING)]


def sort_of(text: str) -> Sort:
    """The order that ``sort`` means."""
    return Sort(text.removeprefix(DESCENDING), text.startswith(DESCENDING))


def asked_page(request: Request, *, usual: int = USUAL, orders: Collection[str] = ()) -> PageRequest:
    """What ``cursor``, ``limit``, ``q``, ``state`` and ``sort`` ask for. Raises Invalid, naming the parameter."""
    given = request.GET
    query = given.get(QUERY, "").strip()
    if len(query) > LONGEST_QUERY:
        raise Invalid({QUERY: say("Use at most {length} characters.", length=LONGEST_QUERY)})
    state = given.get(STATE, "")
    if state not in _STATES:
        raise Invalid({STATE: say("Choose one of the values offered.")})
    sort = given.get(SORT, "")
    if sort and sort not in sorts(orders):
        raise Invalid({SORT: say("Choose one of the values offered.")})
    text = given.get(CURSOR, "")
    cursor = request.services.cursors.read(text, list_name(request)) if text else None
    return PageRequest(
        limit=_limit(given.get(LIMIT, ""), usual),
        cursor=cursor,
        query=query,
        active=_STATES[state],
        sort=sort_of(sort) if sort else None,
        counted=True,
    )


def total_of(request: Request, page: Page[Any]) -> Total | None:
    """How many rows there are on all pages: those of the only page, if nobody counted."""
    if page.total is None and page.next is None and CURSOR not in request.GET:
        return Total(len(page))
    return page.total


def next_cursor(request: Request, cursor: Cursor | None) -> str | None:
    """What to send as ``cursor`` for the next page; None on the last one."""
    text: str | None = request.services.cursors.text(cursor, list_name(request))
    return text


def list_name(request: Request) -> str:
    """What a cursor is bound to: the list's address with its filters."""
    filters = sorted((name, value) for name, value in request.GET.items() if name not in (CURSOR, LIMIT))
    return "&".join([request.path, *(f"{name}={value}" for name, value in filters)])


def _limit(text: str, usual: int) -> int:
    if not text:
        return usual
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MOST or len(text) > 9:
        raise Invalid({LIMIT: say("Choose between 1 and {most}.", most=MOST)})
    return int(text)
