"""ListPage: a table that can be searched and leafed through; empty, it says what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from identity.domain.words import say
from identity.http.lists import CURSOR, DESCENDING, SORT, STATE, asked_page, next_cursor, total_of
from identity.plugins.console.console_page import ConsolePage, Link
from identity.storage.paging import Page, PageRequest, Sort


@dataclass(frozen=True)
class Column:
    """The head of a column: where it leads if one can sort by it, and which way the list is sorted by it now.

    ``sorts`` are the values and words of both ways.
    """

    text: str
    href: str = ""
    direction: str = ""
    sorts: tuple[tuple[str, str], ...] = ()


class ListPage(ConsolePage):
    """Subclasses say what to fetch and how a row is shown; their template fills the block ``row``."""

    #: The heading, and one sentence below it.
    heading: ClassVar[str]
    lead: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]]
    #: What the list can be sorted by, the usual order first, and the column that shows it.
    orders: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: True if the last column holds buttons.
    actions: ClassVar[bool] = False
    searchable: ClassVar[bool] = True
    #: True if rows have a state by which one may choose.
    has_state: ClassVar[bool] = True
    empty_title: ClassVar[str]
    empty_text: ClassVar[str]

    def title(self) -> str:
        """The heading."""
        return self.heading

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """The rows that are asked for."""
        raise NotImplementedError

    def rows(self, found: Sequence[Any]) -> Sequence[Any]:
        """What the template shows of each; whatever else it needs is looked up here, for all rows at once."""
        return found

    def new(self) -> Link | None:
        """The way to make one more, for whoever may."""
        return None

    def filters(self) -> Mapping[str, object]:
        """Further variables of the search form; see ``extra_filters`` of the template."""
        return {}

    def show(self) -> Mapping[str, object]:
        """One page of the list. Raises Invalid for a search that cannot be."""
        asked = asked_page(self.request, orders=dict(self.orders))
        found = self.fetch(asked)
        given = {name: value for name, value in self.request.GET.items() if name != CURSOR}
        columns = list(self._columns(asked.sort, given))
        searched = bool(asked.query or asked.active is not None or self.filtered())
        return {
            "lead": self.words.t(self.lead) if self.lead else "",
            "columns": columns,
            "sorts": [(value, label) for column in columns for value, label in column.sorts],
            # Sent along with a search even by whoever does not see the choice: the usual order is one, too.
            "sort": self.request.GET.get(SORT, "") or next((by for by, _ in self.orders), ""),
            "actions": self.actions,
            "rows": self.rows(found.items),
            "total": total_of(self.request, found),
            "q": asked.query,
            "state": self.request.GET.get(STATE, ""),
            "searchable": self.searchable,
            "has_state": self.has_state,
            "searched": searched,
            "nothing_found": self.words.t(self.nothing_found(asked)),
            "show_all": self.request.path,
            "empty_title": self.words.t(self.empty_title),
            "empty_text": self.words.t(self.empty_text),
            "new": self.new(),
            "first": self._address(given) if asked.cursor is not None else "",
            "next": self._next(found, given),
            **self.filters(),
        }

    def filtered(self) -> bool:
        """True if something other than search and state narrows the list."""
        return False

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said where a search found nothing."""
        if asked.query:
            return say("Nothing here has “{q}” in it.", q=asked.query)
        return say("Nothing fits this search.")

    def _columns(self, sort: Sort | None, given: Mapping[str, str]) -> Iterator["Column"]:
        orders = {label: by for by, label in self.orders}
        sort = sort or Sort(next(iter(orders.values()), ""))
        for label in self.columns:
            text, by = self.words.t(label), orders.get(label)
            if by is None:
                yield Column(text)
                continue
            chosen = by == sort.by
            other = f"{DESCENDING}{by}" if chosen and not sort.descending else by
            direction = ("descending" if sort.descending else "ascending") if chosen else ""
            ways = (
                (by, say("{column}, ascending", column=text)),
                (f"{DESCENDING}{by}", say("{column}, descending", column=text)),
            )
            yield Column(
                text,
                href=self._address({**given, SORT: other}),
                direction=direction,
                sorts=tuple((value, self.words.t(way)) for value, way in ways),
            )

    def _next(self, found: Page[Any], given: Mapping[str, str]) -> str:
        cursor = next_cursor(self.request, found.next)
        return "" if cursor is None else self._address({**given, CURSOR: cursor})

    def _address(self, given: Mapping[str, str]) -> str:
        path: str = self.request.path
        return f"{path}?{urlencode(given)}" if given else path
