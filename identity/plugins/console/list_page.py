"""ListPage: a table that can be searched and leafed through; empty, it says what to do. Its newest rows are a section
of other pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from markupsafe import Markup

from identity.domain.messages import gettext_lazy
from identity.http.list_parameters import (
    CURSOR_PARAM,
    DESCENDING_PREFIX,
    SORT_PARAM,
    STATE_PARAM,
    encode_next_cursor,
    list_total,
    read_page_request,
)
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.page_sections import PREVIEW_ROWS, TableSection
from identity.storage.paging import PageRequest, ResultPage, SortOrder

#: What a row shows, in the order of the columns; after them, where there are actions, the buttons.
Cells = Sequence[object]


@dataclass(frozen=True)
class ListColumn:
    """The head of a column: where it leads if one can sort by it, and which way the list is sorted by it now.

    ``sort_options`` are the values and words of both ways.
    """

    text: str
    href: str = ""
    direction: str = ""
    sort_options: tuple[tuple[str, str], ...] = ()


class ListPage(ConsolePage):
    """Subclasses say what to fetch and what the cells of a row are."""

    template = "console/list.html"
    #: One sentence below the heading.
    lead: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]]
    #: What the list can be sorted by, the usual order first, and the column that shows it.
    sort_orders: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: True if the last column holds buttons.
    has_row_buttons: ClassVar[bool] = False
    is_searchable: ClassVar[bool] = True
    #: True if rows have a state by which one may choose.
    has_state_filter: ClassVar[bool] = True
    empty_title: ClassVar[str]
    empty_text: ClassVar[str]
    #: The permission to make one more, the link that leads there, and what completes its words.
    create_permission: ClassVar[str] = ""
    create_label: ClassVar[str] = gettext_lazy("New")
    entity_label: ClassVar[str] = ""
    #: As a section of another page: its id, the link to the whole list, and the permission to see it.
    section_id: ClassVar[str] = ""
    all_link_label: ClassVar[str] = ""
    read_permission: ClassVar[str] = ""
    #: The sentences of the section, where they are others.
    section_lead: ClassVar[str] = ""
    section_empty: ClassVar[str] = ""
    #: True if the new ones are made from there alone.
    is_created_from_section: ClassVar[bool] = False
    #: True if there is that link even where all are shown.
    always_links_to_list: ClassVar[bool] = False
    #: True if the page's first task is to make one.
    is_primary_task: ClassVar[bool] = False

    @property
    def list_path(self) -> str:
        """The address of the list."""
        path: str = self.request.path
        return path

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        """The rows that are asked for."""
        raise NotImplementedError

    def build_rows(self, found: Sequence[Any]) -> Sequence[Cells]:
        """The cells of each; whatever else they need is looked up here, for all rows at once."""
        return [self.build_cells(item) for item in found]

    def build_cells(self, one: Any) -> Cells:
        """The cells of one row; the first one names it."""
        raise NotImplementedError

    def can_create(self) -> bool:
        """True if whoever looks may make one more."""
        return bool(self.create_permission) and self.has_permission(self.create_permission)

    def create_button(self, kind: str = "primary") -> Markup:
        """The way to make one more, for whoever may."""
        if not self.can_create():
            return Markup()
        return self.button_link(
            self.create_label, f"{self.list_path}/new", what=self.entity_label, kind=kind, symbol="plus"
        )

    def filter_variables(self) -> Mapping[str, object]:
        """Further variables of the template."""
        return {}

    def template_variables(self) -> Mapping[str, object]:
        """One page of the list. Raises Invalid for a search that cannot be."""
        page_request = read_page_request(self.request, orders=dict(self.sort_orders))
        page = self.fetch_page(page_request)
        given = {name: value for name, value in self.request.GET.items() if name != CURSOR_PARAM}
        columns = list(self._columns(page_request.sort, given))
        return {
            "lead": self.translate(self.lead),
            "columns": columns,
            "sorts": [(value, label) for column in columns for value, label in column.sort_options],
            # Sent along with a search even by whoever does not see the choice: the usual order is one, too.
            "sort": self.request.GET.get(SORT_PARAM, "") or next((by for by, _ in self.sort_orders), ""),
            "actions": self.has_row_buttons,
            "rows": self.build_rows(page.items),
            "total": list_total(self.request, page),
            "q": page_request.query,
            "state": self.request.GET.get(STATE_PARAM, ""),
            "searchable": self.is_searchable,
            "has_state": self.has_state_filter,
            "searched": bool(page_request.query or page_request.active is not None or self.is_filtered()),
            "nothing_found": self.translate(self.empty_search_message(page_request)),
            "show_all": self.request.path,
            "empty_title": self.translate(self.empty_title),
            "empty_text": self.translate(self.empty_text),
            "new": "" if self.is_created_from_section else self.create_button(),
            "first": self._list_path_with(given) if page_request.cursor is not None else "",
            "next": self._next_page_path(page, given),
            **self.filter_variables(),
        }

    @classmethod
    def bind_to_page(cls, page: ConsolePage) -> Self:
        """The same list on another page about the same thing."""
        list_page = cls(page.context, page.request)
        list_page.organization = page.organization
        return list_page

    def build_section(self, *, lead: str = "") -> TableSection | None:
        """The first rows; None for whoever may not see them."""
        if self.read_permission and not self.has_permission(self.read_permission):
            return None
        page = self.fetch_page(PageRequest(limit=PREVIEW_ROWS))
        rows = self.build_rows(page.items[:PREVIEW_ROWS])
        more = self.always_links_to_list or page.next_cursor is not None or len(page) > PREVIEW_ROWS
        return TableSection(
            self.section_id,
            self.title,
            lead or self.section_lead or self.lead,
            columns=self.columns,
            rows=rows,
            has_row_buttons=self.has_row_buttons,
            empty=self.section_empty or self.empty_title,
            action=self.create_button("primary" if self.is_primary_task and not rows else ""),
            all_link=(self.all_link_label, self.list_path) if more else None,
        )

    def is_filtered(self) -> bool:
        """True if something other than search and state narrows the list."""
        return False

    def empty_search_message(self, page_request: PageRequest) -> str:
        """What is said where a search found nothing."""
        if page_request.query:
            return gettext_lazy("Nothing here has “{q}” in it.", q=page_request.query)
        return gettext_lazy("Nothing fits this search.")

    def _columns(self, sort: SortOrder | None, given: Mapping[str, str]) -> Iterator["ListColumn"]:
        orders = {label: by for by, label in self.sort_orders}
        sort = sort or SortOrder(next(iter(orders.values()), ""))
        for label in self.columns:
            text, by = self.translator.gettext(label), orders.get(label)
            if by is None:
                yield ListColumn(text)
                continue
            chosen = by == sort.key
            other = f"{DESCENDING_PREFIX}{by}" if chosen and not sort.descending else by
            direction = ("descending" if sort.descending else "ascending") if chosen else ""
            ways = (
                (by, gettext_lazy("{column}, ascending", column=text)),
                (f"{DESCENDING_PREFIX}{by}", gettext_lazy("{column}, descending", column=text)),
            )
            yield ListColumn(
                text,
                href=self._list_path_with({**given, SORT_PARAM: other}),
                direction=direction,
                sort_options=tuple((value, self.translator.gettext(message)) for value, message in ways),
            )

    def _next_page_path(self, page: ResultPage[Any], given: Mapping[str, str]) -> str:
        cursor = encode_next_cursor(self.request, page.next_cursor)
        return "" if cursor is None else self._list_path_with({**given, CURSOR_PARAM: cursor})

    def _list_path_with(self, given: Mapping[str, str]) -> str:
        path: str = self.request.path
        return f"{path}?{urlencode(given)}" if given else path
