"""Parameters of lists, for the console and the API alike: page, order and filters."""

from collections.abc import Collection, Iterable
from typing import Any

from pyramid.request import Request

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.storage.paging import PageCursor, PageRequest, ResultPage, RowTotal, SortOrder

LIMIT_PARAM, QUERY_PARAM, STATE_PARAM, SORT_PARAM = "limit", "q", "state", "sort"

#: Prefix of a descending order.
DESCENDING_PREFIX = "-"

#: The default number of rows per page.
DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
MAX_QUERY_LENGTH = 200
_MAX_OFFSET_DIGITS = 9

_STATES = {"": None, "active": True, "deactivated": False}


def sort_values(orders: Iterable[str]) -> list[str]:
    """The values of ``sort`` for a list with these orders."""
    return [f"{sign}{order}" for order in orders for sign in ("", DESCENDING_PREFIX)]


def parse_sort(text: str) -> SortOrder:
    return SortOrder(text.removeprefix(DESCENDING_PREFIX), text.startswith(DESCENDING_PREFIX))


def cursor_scope(request: Request) -> str:
    """What a cursor is bound to: the list's path with its filters."""
    filters = sorted(
        (name, value)
        for name, value in request.GET.items()
        if name not in (ListParameters.CURSOR, ListParameters.OFFSET, LIMIT_PARAM)
    )
    return "&".join([request.path, *(f"{name}={value}" for name, value in filters)])


def _limit(text: str, usual: int) -> int:
    if not text:
        return usual
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_PAGE_SIZE or len(text) > 9:
        raise Invalid({LIMIT_PARAM: gettext_lazy("Choose between 1 and {most}.", most=MAX_PAGE_SIZE)})
    return int(text)


class ListParameters:
    """The parameters of a request, as the page of a list that they ask for, and what leads to the next one."""

    CURSOR = "cursor"
    #: Beside a cursor, on pages: how many rows come before.
    OFFSET = "offset"

    @staticmethod
    def read(request: Request, *, usual: int = DEFAULT_PAGE_SIZE, orders: Collection[str] = ()) -> PageRequest:
        """The page that ``cursor``, ``limit``, ``q``, ``state`` and ``sort`` request. Raises Invalid, naming the
        parameter."""
        parameters = request.GET
        query = parameters.get(QUERY_PARAM, "").strip()
        if len(query) > MAX_QUERY_LENGTH:
            raise Invalid({QUERY_PARAM: gettext_lazy("Use at most {length} characters.", length=MAX_QUERY_LENGTH)})
        state = parameters.get(STATE_PARAM, "")
        if state not in _STATES:
            raise Invalid({STATE_PARAM: gettext_lazy("Choose one of the values offered.")})
        sort = parameters.get(SORT_PARAM, "")
        if sort and sort not in sort_values(orders):
            raise Invalid({SORT_PARAM: gettext_lazy("Choose one of the values offered.")})
        text = parameters.get(ListParameters.CURSOR, "")
        cursor = request.services.cursors.decode(text, cursor_scope(request)) if text else None
        return PageRequest(
            limit=_limit(parameters.get(LIMIT_PARAM, ""), usual),
            cursor=cursor,
            query=query,
            active=_STATES[state],
            sort=parse_sort(sort) if sort else None,
            with_total=True,
        )

    @staticmethod
    def total(request: Request, page: ResultPage[Any]) -> RowTotal | None:
        """The number of rows on all pages: counted, or those of the only page."""
        if page.total is None and page.next_cursor is None and ListParameters.CURSOR not in request.GET:
            return RowTotal(len(page))
        return page.total

    @staticmethod
    def offset(request: Request) -> int | None:
        """The number of rows on the pages before, as the link to this page says. It is only displayed; None if it is
        missing or malformed."""
        if ListParameters.CURSOR not in request.GET:
            return 0
        text = request.GET.get(ListParameters.OFFSET, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_OFFSET_DIGITS else None

    @staticmethod
    def next_cursor(request: Request, cursor: PageCursor | None) -> str | None:
        """The ``cursor`` of the next page; None on the last one."""
        text: str | None = request.services.cursors.encode(cursor, cursor_scope(request))
        return text
