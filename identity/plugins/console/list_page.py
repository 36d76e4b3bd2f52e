"""ListPage: a searchable, paged table with an empty state. Its first rows can be a section of other pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from markupsafe import Markup

from identity.domain.messages import gettext_lazy
from identity.http.list_parameters import DESCENDING_PREFIX, SORT_PARAM, STATE_PARAM, ListParameters
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.page_sections import PREVIEW_ROWS, TableSection
from identity.storage.paging import PageRequest, ResultPage, SortOrder

#: Cells in the order of the columns; the last one holds the buttons, if there are any.
Cells = Sequence[object]


@dataclass(frozen=True)
class ListColumn:
    """A column heading, with the link that sorts by it and the current sort direction. ``sort_options`` are value
    and label of both directions.
    """

    text: str
    href: str = ""
    direction: str = ""
    sort_options: tuple[tuple[str, str], ...] = ()


class ListPage(ConsolePage):
    """Subclasses fetch the rows and build the cells."""

    template = "console/list.html"
    #: Shown below the heading.
    lead: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]]
    #: Sort key and column of each order, the default first.
    sort_orders: ClassVar[tuple[tuple[str, str], ...]] = ()
    has_row_buttons: ClassVar[bool] = False
    is_searchable: ClassVar[bool] = True
    has_state_filter: ClassVar[bool] = True
    empty_title: ClassVar[str]
    empty_text: ClassVar[str]
    #: The permission to create an entity, the button, and the hidden end of its label.
    create_permission: ClassVar[str] = ""
    create_label: ClassVar[str] = gettext_lazy("New")
    entity_label: ClassVar[str] = ""
    #: As a section of another page: its id, the link to the whole list, and the permission to see it.
    section_id: ClassVar[str] = ""
    all_link_label: ClassVar[str] = ""
    read_permission: ClassVar[str] = ""
    #: Texts of the section, where they differ.
    section_lead: ClassVar[str] = ""
    section_empty: ClassVar[str] = ""
    #: True if entities are created from the section only.
    is_created_from_section: ClassVar[bool] = False
    #: True to link to the list even if the section shows all rows.
    always_links_to_list: ClassVar[bool] = False
    #: True if creating an entity is the page's primary action.
    is_primary_task: ClassVar[bool] = False

    @property
    def list_path(self) -> str:
        path: str = self.request.path
        return path

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        raise NotImplementedError

    def build_rows(self, found: Sequence[Any]) -> Sequence[Cells]:
        """The cells of each row. Override to load related data in bulk."""
        return [self.build_cells(item) for item in found]

    def build_cells(self, item: Any) -> Cells:
        """The cells of one row; the first one names it."""
        raise NotImplementedError

    def can_create(self) -> bool:
        return bool(self.create_permission) and self.has_permission(self.create_permission)

    def create_button(self, kind: str = "primary") -> Markup:
        """The button for callers who may create an entity, else empty."""
        if not self.can_create():
            return Markup()
        return self.button_link(
            self.create_label, f"{self.list_path}/new", hidden_label=self.entity_label, kind=kind, symbol="plus"
        )

    def filter_variables(self) -> Mapping[str, object]:
        return {}

    def template_variables(self) -> Mapping[str, object]:
        """Raises Invalid for a malformed search."""
        page_request = ListParameters.read(self.request, orders=dict(self.sort_orders))
        page = self.fetch_page(page_request)
        parameters = {name: value for name, value in self.request.GET.items() if name != ListParameters.CURSOR}
        columns = list(self._columns(page_request.sort, parameters))
        return {
            "lead": self.translate(self.lead),
            "columns": columns,
            "sorts": [(value, label) for column in columns for value, label in column.sort_options],
            # Always sent with a search; defaults to the first order.
            "sort": self.request.GET.get(SORT_PARAM, "") or next((key for key, _ in self.sort_orders), ""),
            "actions": self.has_row_buttons,
            "rows": self.build_rows(page.items),
            "total": ListParameters.total(self.request, page),
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
            "first": self._list_path_with(parameters) if page_request.cursor is not None else "",
            "next": self._next_page_path(page, parameters),
            **self.filter_variables(),
        }

    @classmethod
    def bind_to_page(cls, page: ConsolePage) -> Self:
        """The same list as a section of another page about the same resource."""
        list_page = cls(page.context, page.request)
        list_page.organization = page.organization
        return list_page

    def build_section(self, *, lead: str = "") -> TableSection | None:
        """The first rows; None if the caller may not see them."""
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
        """True if a filter besides search and state is set."""
        return False

    def empty_search_message(self, page_request: PageRequest) -> str:
        if page_request.query:
            return gettext_lazy("Nothing here has “{q}” in it.", q=page_request.query)
        return gettext_lazy("Nothing fits this search.")

    def _columns(self, sort: SortOrder | None, parameters: Mapping[str, str]) -> Iterator["ListColumn"]:
        orders = {label: key for key, label in self.sort_orders}
        sort = sort or SortOrder(next(iter(orders.values()), ""))
        for label in self.columns:
            text, key = self.translator.gettext(label), orders.get(label)
            if key is None:
                yield ListColumn(text)
                continue
            chosen = key == sort.key
            other = f"{DESCENDING_PREFIX}{key}" if chosen and not sort.descending else key
            direction = ("descending" if sort.descending else "ascending") if chosen else ""
            directions = (
                (key, gettext_lazy("{column}, ascending", column=text)),
                (f"{DESCENDING_PREFIX}{key}", gettext_lazy("{column}, descending", column=text)),
            )
            yield ListColumn(
                text,
                href=self._list_path_with({**parameters, SORT_PARAM: other}),
                direction=direction,
                sort_options=tuple((value, self.translator.gettext(message)) for value, message in directions),
            )

    def _next_page_path(self, page: ResultPage[Any], parameters: Mapping[str, str]) -> str:
        cursor = ListParameters.next_cursor(self.request, page.next_cursor)
        return "" if cursor is None else self._list_path_with({**parameters, ListParameters.CURSOR: cursor})

    def _list_path_with(self, parameters: Mapping[str, str]) -> str:
        path: str = self.request.path
        return f"{path}?{urlencode(parameters)}" if parameters else path
