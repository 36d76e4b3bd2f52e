"""ListPage: a table that can be searched and leafed through; empty, it says what to do. Its newest rows are a section
of other pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from markupsafe import Markup

from identity.domain.words import say
from identity.http.lists import CURSOR, DESCENDING, SORT, STATE, asked_page, next_cursor, total_of
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.sections import FEW, Table
from identity.storage.paging import Page, PageRequest, Sort

#: What a row shows, in the order of the columns; after them, where there are actions, the buttons.
Cells = Sequence[object]


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
    """Subclasses say what to fetch and what the cells of a row are."""

    template = "console/list.html"
    #: One sentence below the heading.
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
    #: The permission to make one more, the link that leads there, and what completes its words.
    writing: ClassVar[str] = ""
    new_label: ClassVar[str] = say("New")
    what: ClassVar[str] = ""
    #: As a section of another page: its id, the link to the whole list, and the permission to see it.
    id: ClassVar[str] = ""
    all_of_them: ClassVar[str] = ""
    reading: ClassVar[str] = ""
    #: The sentences of the section, where they are others.
    section_lead: ClassVar[str] = ""
    section_empty: ClassVar[str] = ""
    #: True if the new ones are made from there alone.
    made_there: ClassVar[bool] = False
    #: True if there is that link even where all are shown.
    leads_on: ClassVar[bool] = False
    #: True if the page's first task is to make one.
    comes_first: ClassVar[bool] = False

    @property
    def list_href(self) -> str:
        """The address of the list."""
        path: str = self.request.path
        return path

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """The rows that are asked for."""
        raise NotImplementedError

    def rows(self, found: Sequence[Any]) -> Sequence[Cells]:
        """The cells of each; whatever else they need is looked up here, for all rows at once."""
        return [self.cells(one) for one in found]

    def cells(self, one: Any) -> Cells:
        """The cells of one row; the first one names it."""
        raise NotImplementedError

    def may_make(self) -> bool:
        """True if whoever looks may make one more."""
        return bool(self.writing) and self.may(self.writing)

    def new(self, kind: str = "primary") -> Markup:
        """The way to make one more, for whoever may."""
        if not self.may_make():
            return Markup()
        return self.link(self.new_label, f"{self.list_href}/new", what=self.what, kind=kind, symbol="plus")

    def filters(self) -> Mapping[str, object]:
        """Further variables of the template."""
        return {}

    def show(self) -> Mapping[str, object]:
        """One page of the list. Raises Invalid for a search that cannot be."""
        asked = asked_page(self.request, orders=dict(self.orders))
        found = self.fetch(asked)
        given = {name: value for name, value in self.request.GET.items() if name != CURSOR}
        columns = list(self._columns(asked.sort, given))
        return {
            "lead": self.said(self.lead),
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
            "searched": bool(asked.query or asked.active is not None or self.filtered()),
            "nothing_found": self.said(self.nothing_found(asked)),
            "show_all": self.request.path,
            "empty_title": self.said(self.empty_title),
            "empty_text": self.said(self.empty_text),
            "new": "" if self.made_there else self.new(),
            "first": self._address(given) if asked.cursor is not None else "",
            "next": self._next(found, given),
            **self.filters(),
        }

    @classmethod
    def on(cls, page: ConsolePage) -> Self:
        """The same list on another page about the same thing."""
        made = cls(page.context, page.request)
        made.organization = page.organization
        return made

    def as_section(self, *, lead: str = "") -> Table | None:
        """The first rows; None for whoever may not see them."""
        if self.reading and not self.may(self.reading):
            return None
        found = self.fetch(PageRequest(limit=FEW))
        rows = self.rows(found.items[:FEW])
        more = self.leads_on or found.next is not None or len(found) > FEW
        return Table(
            self.id,
            self.title,
            lead or self.section_lead or self.lead,
            columns=self.columns,
            rows=rows,
            actions=self.actions,
            empty=self.section_empty or self.empty_title,
            action=self.new("primary" if self.comes_first and not rows else ""),
            rest=(self.all_of_them, self.list_href) if more else None,
        )

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
