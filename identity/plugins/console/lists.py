"""ResourceList: what a list of entities shows. ListPage shows it as a page with search, sorting and paging;
``list_section`` shows its beginning as a section of another page.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.request import Request
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.messages import gettext_lazy as _
from identity.http.list_parameters import DESCENDING_PREFIX, QUERY_PARAM, SORT_PARAM, STATE_PARAM, ListParameters
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form, FormMessage
from identity.pages.page import FormPage, Page
from identity.plugins.console.bulk_actions import BulkActions
from identity.plugins.console.console_page import Breadcrumbs, ConsolePage
from identity.plugins.console.list_preferences import (
    NAME_FIELD,
    ListPreferences,
    change_preferences,
    load_preferences,
)
from identity.plugins.console.page_sections import PREVIEW_ROWS, TableSection
from identity.plugins.console.resource_types import AnyResourceType
from identity.plugins.console.routes import ConsoleRoute
from identity.storage.paging import PageRequest, ResultPage, SortOrder

#: Query parameters: ids of the selected rows, and which rows the page shows selected.
SELECTED_PARAM, SELECTION_PARAM = "selected", "select"
_WHOLE_PAGE = "page"
MAX_SELECTED_ROWS = 200

#: Cells in the order of the columns; the first one names the row, the last one holds the buttons, if there are any.
Cells = Sequence[object]
_OF_ONE_PAGE = frozenset({ListParameters.CURSOR, ListParameters.OFFSET, SELECTION_PARAM})
RowT = TypeVar("RowT")

#: Lists with more columns have a menu to choose them.
_FEW_COLUMNS = 3
#: Fields of the forms that the list's page takes by POST.
_COLUMN_FIELD, _TASK_FIELD, _REMOVED_FIELD = "column", "task", "removed"
_CHOOSE_COLUMNS, _RESET_COLUMNS, _SAVE_SEARCH = "columns", "default_columns", "save"


@dataclass(frozen=True)
class OptionalColumn(Generic[RowT]):
    """A column that is not there by default. ``cells`` costs one query at most."""

    id: str
    label: str
    cells: Callable[[ConsolePage, Sequence[RowT]], Sequence[object]]


@dataclass(frozen=True, kw_only=True)
class ResourceList(Generic[RowT]):
    """``path`` is relative to that of the entity to which the rows belong. ``sort_orders`` are sort key and column,
    the default first. Callers with the permission ``create`` get a button with ``create_label``; ``entity_label`` is
    the hidden end of its label. ``action`` is a button that the page has besides.
    """

    path: str
    permission: str
    title: str
    columns: tuple[str, ...]
    fetch: Callable[[ConsolePage, PageRequest], ResultPage[RowT]]
    rows: Callable[[ConsolePage, Sequence[RowT]], Sequence[Cells]]
    empty_title: str
    empty_text: str
    lead: str = ""
    sort_orders: tuple[tuple[str, str], ...] = ()
    optional_columns: Callable[[ConsolePage], Sequence[OptionalColumn[RowT]]] = lambda page: ()
    has_row_buttons: bool = False
    is_searchable: bool = True
    has_state_filter: bool = True
    create: str = ""
    create_label: str = _("New")
    entity_label: str = ""
    can_create: Callable[[ConsolePage], bool] = lambda page: True
    action: Callable[[ConsolePage], Markup] = lambda page: Markup()
    #: Actions on selected rows. Their pages, below ``/selected``, get the ids in their query.
    bulk: BulkActions[RowT] | None = None
    #: The navigation section, of lists that are one.
    section: str = ""
    #: As a section of another page: its HTML id if not the path, the link to the whole list, texts where they differ.
    section_id: str = ""
    all_label: str = ""
    section_lead: str = ""
    section_empty: str = ""
    #: True if entities are created from the section only.
    is_created_from_section: bool = False
    #: True to link to the list even if the section shows all rows.
    always_links_to_list: bool = False
    #: True if creating an entity is the primary action of the section's page.
    is_primary_task: bool = False

    def section_of(self, page: ConsolePage, parent: AnyResourceType) -> str:
        return self.section or parent.section_of(page, parent.find_entity(page))

    def parents(self, page: ConsolePage, parent: AnyResourceType) -> Breadcrumbs:
        """The pages above the list; none above a section of the navigation."""
        return () if self.section else parent.breadcrumbs(page, parent.find_entity(page))

    def create_button(self, page: ConsolePage, path: str, kind: str = "primary") -> Markup:
        """The button for callers who may create an entity, else empty. ``path`` is that of the list."""
        if not self.create or not page.has_permission(self.create) or not self.can_create(page):
            return Markup()
        return page.button_link(
            self.create_label, f"{path}/new", hidden_label=self.entity_label, kind=kind, symbol="plus"
        )


@dataclass(frozen=True)
class ListColumn:
    """A column heading, with the link that sorts by it and the current sort direction."""

    text: str
    href: str = ""
    direction: str = ""


class ListPreferencesPage(ConsolePage, FormPage):
    """A page with a list. Its forms change what the manager chose for the list; ``preference_problem`` is what was
    wrong with one."""

    preference_problem = ""
    repeated_fields = frozenset({_COLUMN_FIELD})

    @property
    def list_id(self) -> str:
        """The same for all organizations."""
        raise NotImplementedError

    @property
    def listed(self) -> ResourceList[Any]:
        raise NotImplementedError

    @cached_property
    def preferences(self) -> ListPreferences:
        return load_preferences(self.request, self.list_id)

    def get(self) -> Response:
        return Page.get(self)

    def submit(self, form: Form) -> Response:
        """Change the manager's own columns or saved searches. Raises Invalid, Conflict."""
        task = form.text(_TASK_FIELD)
        if task == _CHOOSE_COLUMNS:
            chosen, known = form.texts(_COLUMN_FIELD), _ListColumns(self, self.listed, ListPreferences()).choice_ids
            change_preferences(self.request, self.list_id, lambda item: item.with_columns(chosen, known))
        elif task == _RESET_COLUMNS:
            change_preferences(self.request, self.list_id, lambda item: replace(item, columns=None))
        elif task == _SAVE_SEARCH:
            # Raises Invalid for a malformed search.
            ListParameters.read(self.request, orders=dict(self.listed.sort_orders))
            name, query = form.text(NAME_FIELD), urlencode(self.search_parameters())
            change_preferences(self.request, self.list_id, lambda item: item.with_search(name, query))
        elif form.text(_REMOVED_FIELD):
            removed = form.text(_REMOVED_FIELD)
            change_preferences(self.request, self.list_id, lambda item: item.without_search(removed))
        query = urlencode(self.search_parameters())
        return self.redirect(f"{self.request.path}?{query}" if query else self.request.path)

    def search_parameters(self) -> Mapping[str, str]:
        """What makes the present search, without the page of its result."""
        names = (QUERY_PARAM, STATE_PARAM, SORT_PARAM, *self.fields)
        values = {name: self.request.GET.get(name, "").strip() for name in names}
        return {name: value for name, value in values.items() if value}

    def _redisplay(
        self,
        form: Form,
        *,
        status: int,
        problems: Mapping[str, str] | None = None,
        notice: FormMessage | None = None,
        **_state: Any,
    ) -> Response:
        """The list, with the first problem above it."""
        self.preference_problem = next(iter((problems or {}).values()), "" if notice is None else notice.text)
        response = self.get()
        response.status_int = status
        return response


class ListPage(ListPreferencesPage):
    """``parent`` is the type of the entity to which the rows belong."""

    template = "console/list.html"
    title = ""
    is_instance_page = False

    def __init__(
        self, context: RouteContext, request: Request, *, resource_list: ResourceList[Any], parent: AnyResourceType
    ) -> None:
        super().__init__(context, request)
        self.resource_list, self.parent, self.title = resource_list, parent, resource_list.title
        self.is_instance_page = parent.is_instance_page(self)

    @property
    def section(self) -> str:
        return self.resource_list.section_of(self, self.parent)

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return self.resource_list.parents(self, self.parent)

    def template_variables(self) -> Mapping[str, object]:
        """Raises Invalid for a malformed search."""
        return {**ListView(self, self.resource_list).template_variables(), **self.filter_variables()}

    @property
    def list_id(self) -> str:
        return f"{self.parent.path}{self.resource_list.path}"

    @property
    def listed(self) -> ResourceList[Any]:
        return self.resource_list

    def filter_variables(self) -> Mapping[str, object]:
        """Template variables of further filters."""
        return {}

    def is_filtered(self) -> bool:
        """True if a filter besides search and state is set."""
        return False

    def empty_search_message(self, page_request: PageRequest) -> str:
        return empty_search_message(page_request)


def empty_search_message(page_request: PageRequest) -> str:
    if page_request.query:
        return _("Nothing here contains “{q}”.", q=page_request.query)
    return _("No results match this search.")


class _ListColumns(Generic[RowT]):
    """The columns of a list that the manager chose; the first one, which names the row, is always there."""

    def __init__(self, page: ConsolePage, resource_list: ResourceList[RowT], preferences: ListPreferences) -> None:
        self._page, self._list, self._chosen = page, resource_list, preferences.columns
        self._optional = resource_list.optional_columns(page) if isinstance(page, ListPreferencesPage) else ()
        self._usual = [(column_id(label), label) for label in resource_list.columns]

    def _is_chosen(self, id_: str, *, by_default: bool) -> bool:
        return by_default if self._chosen is None else id_ in self._chosen

    @property
    def _usual_positions(self) -> Sequence[int]:
        further = (
            position
            for position, (id_, _label) in enumerate(self._usual)
            if position and self._is_chosen(id_, by_default=True)
        )
        return [0, *further]

    @property
    def _chosen_optional(self) -> Sequence[OptionalColumn[RowT]]:
        return [column for column in self._optional if self._is_chosen(column.id, by_default=False)]

    @property
    def labels(self) -> Sequence[str]:
        usual = [self._usual[position][1] for position in self._usual_positions]
        return [*usual, *(column.label for column in self._chosen_optional)]

    @property
    def choices(self) -> Sequence[tuple[str, str, bool]]:
        """Id and label of each column that can be chosen, and whether it is; empty for lists with few columns."""
        if len(self._usual) + len(self._optional) <= _FEW_COLUMNS:
            return []
        translate = self._page.translate
        usual = [(id_, translate(label), self._is_chosen(id_, by_default=True)) for id_, label in self._usual[1:]]
        return usual + [
            (column.id, translate(column.label), self._is_chosen(column.id, by_default=False))
            for column in self._optional
        ]

    @property
    def choice_ids(self) -> Sequence[str]:
        return [id_ for id_, _label, _chosen in self.choices]

    def rows(self, items: Sequence[RowT]) -> Sequence[Cells]:
        """The cells of these columns, and the one with the buttons."""
        positions, width = self._usual_positions, len(self._usual)
        further = [column.cells(self._page, items) for column in self._chosen_optional]
        return [
            (*(row[position] for position in positions), *(cells[index] for cells in further), *row[width:])
            for index, row in enumerate(self._list.rows(self._page, items))
        ]


def column_id(label: str) -> str:
    """From the English label, which no list has twice."""
    return re.sub(r"[^a-z0-9]+", "_", str(getattr(label, "template", label)).lower())


class ListView(Generic[RowT]):
    """The list that a page shows: search, order and cursor are in the request's query."""

    def __init__(self, page: ConsolePage, resource_list: ResourceList[RowT], *, path: str = "") -> None:
        self.page, self.resource_list = page, resource_list
        #: That of the list, below which entities are created.
        self.path = path or page.request.path

    def template_variables(self) -> Mapping[str, object]:
        """Raises Invalid for a malformed search."""
        resource_list, page, request = self.resource_list, self.page, self.page.request
        page_request = ListParameters.read(request, orders=dict(resource_list.sort_orders))
        found = resource_list.fetch(page, page_request)
        parameters = {name: value for name, value in request.GET.items() if name not in _OF_ONE_PAGE}
        preferences = page.preferences if isinstance(page, ListPreferencesPage) else ListPreferences()
        chosen = _ListColumns(page, resource_list, preferences)
        columns = list(self._columns(chosen.labels, page_request.sort, parameters))
        cursor, offset = ListParameters.next_cursor(request, found.next_cursor), ListParameters.offset(request)
        rows, bulk = chosen.rows(found.items), self._bulk_actions()
        if bulk:
            rows = self._selectable(found.items, rows)
        is_filtered, nothing_found = False, empty_search_message(page_request)
        if isinstance(page, ListPage):
            is_filtered, nothing_found = page.is_filtered(), page.empty_search_message(page_request)
        return {
            **(self._preference_variables(page, chosen) if isinstance(page, ListPreferencesPage) else {}),
            "list_lead": page.translate(resource_list.lead),
            "columns": columns,
            "sorts": list(self._sort_options()),
            # Always sent with a search; defaults to the first order.
            "sort": request.GET.get(SORT_PARAM, "") or next((key for key, _ in resource_list.sort_orders), ""),
            "has_row_buttons": resource_list.has_row_buttons,
            "rows": rows,
            "bulk": bulk,
            "select_all": self._path_with({**parameters, SELECTION_PARAM: _WHOLE_PAGE}, request.GET),
            "total": ListParameters.total(request, found),
            "q": page_request.query,
            "state": request.GET.get(STATE_PARAM, ""),
            "searchable": resource_list.is_searchable,
            "has_state": resource_list.has_state_filter,
            "searched": bool(page_request.query or page_request.active is not None or is_filtered),
            "nothing_found": page.translate(nothing_found),
            "show_all": request.path,
            "empty_title": page.translate(resource_list.empty_title),
            "empty_text": page.translate(resource_list.empty_text),
            "new": "" if resource_list.is_created_from_section else resource_list.create_button(page, self.path),
            "beside": resource_list.action(page),
            "first": self._path_with(parameters) if page_request.cursor is not None else "",
            "offset": offset,
            "next": "" if cursor is None else self._path_with({**parameters, **_next_page(cursor, offset, len(found))}),
        }

    def _preference_variables(self, page: "ListPreferencesPage", chosen: "_ListColumns[RowT]") -> Mapping[str, object]:
        current = urlencode(page.search_parameters())
        return {
            "column_choices": chosen.choices,
            "form_path": f"{page.request.path}?{current}" if current else page.request.path,
            "saved_searches": [
                (item.name, f"{page.request.path}?{item.query}", item.query == current)
                for item in page.preferences.searches
            ],
            "is_search": bool(current),
            "search_name": next((item.name for item in page.preferences.searches if item.query == current), ""),
            "preference_problem": page.translate(page.preference_problem),
        }

    def _bulk_actions(self) -> Sequence[tuple[str, str]]:
        """Path and label of each action on selected rows."""
        bulk = self.resource_list.bulk
        return [
            (f"{self.path}/selected/{action.path}", self.page.translate(action.label))
            for action in (() if bulk is None else bulk.available(self.page))
        ]

    def _selectable(self, items: Sequence[Any], rows: Sequence[Cells]) -> Sequence[Cells]:
        """The rows with a checkbox in the first cell of each."""
        page, bulk = self.page, self.resource_list.bulk
        checked = Markup(" checked") if page.request.GET.get(SELECTION_PARAM) == _WHOLE_PAGE else ""
        box = Markup('<span class="selectable"><input type="checkbox" name="{}" value="{}" aria-label="{}"{}>{}</span>')
        links = () if bulk is None else bulk.links(page, items)
        return [
            (
                box.format(SELECTED_PARAM, item.id, page.translate(_("Select {name}", name=link.name)), checked, first),
                *cells,
            )
            for item, link, (first, *cells) in zip(items, links, rows, strict=True)
        ]

    def _columns(
        self, labels: Sequence[str], sort: SortOrder | None, parameters: Mapping[str, str]
    ) -> Iterator[ListColumn]:
        orders = {label: key for key, label in self.resource_list.sort_orders}
        sort = sort or SortOrder(next(iter(orders.values()), ""))
        for label in labels:
            text, key = self.page.translate(label), orders.get(label)
            if key is None:
                yield ListColumn(text)
                continue
            chosen = key == sort.key
            other = f"{DESCENDING_PREFIX}{key}" if chosen and not sort.descending else key
            direction = ("descending" if sort.descending else "ascending") if chosen else ""
            yield ListColumn(text, href=self._path_with({**parameters, SORT_PARAM: other}), direction=direction)

    def _sort_options(self) -> Iterator[tuple[str, str]]:
        """Value and label of both directions of each order; there may be no column for it."""
        t = self.page.translator.gettext
        for key, label in self.resource_list.sort_orders:
            yield key, t(_("{column}, ascending", column=t(label)))
            yield f"{DESCENDING_PREFIX}{key}", t(_("{column}, descending", column=t(label)))

    def _path_with(self, parameters: Mapping[str, str], present: Mapping[str, str] = MappingProxyType({})) -> str:
        """The list with these parameters, at the page that those ``present`` name."""
        path: str = self.page.request.path
        position = (ListParameters.CURSOR, ListParameters.OFFSET)
        parameters = {**parameters, **{name: present[name] for name in position if name in present}}
        return f"{path}?{urlencode(parameters)}" if parameters else path


def _next_page(cursor: str, offset: int | None, count: int) -> Mapping[str, str]:
    """The parameters that lead there from a page with ``count`` rows."""
    position = {} if offset is None else {ListParameters.OFFSET: str(offset + count)}
    return {ListParameters.CURSOR: cursor, **position}


def list_section(
    page: ConsolePage, resource_list: ResourceList[RowT], parent_path: str, *, lead: str = ""
) -> TableSection | None:
    """The first rows on the page of the entity to which they belong; None if the caller may not see them."""
    if not page.has_permission(resource_list.permission):
        return None
    path = f"{parent_path}{resource_list.path}"
    found = resource_list.fetch(page, PageRequest(limit=PREVIEW_ROWS))
    rows = resource_list.rows(page, found.items[:PREVIEW_ROWS])
    more = resource_list.always_links_to_list or found.next_cursor is not None or len(found) > PREVIEW_ROWS
    kind = "primary" if resource_list.is_primary_task and not rows else ""
    return TableSection(
        resource_list.section_id or resource_list.path.removeprefix("/"),
        resource_list.title,
        lead or resource_list.section_lead or resource_list.lead,
        columns=resource_list.columns,
        rows=rows,
        has_row_buttons=resource_list.has_row_buttons,
        empty=resource_list.section_empty or resource_list.empty_title,
        action=resource_list.create_button(page, path, kind) or resource_list.action(page),
        all_link=(resource_list.all_label, path) if more else None,
    )


def list_route(resource_list: ResourceList[RowT], parent: AnyResourceType) -> ConsoleRoute:
    """The route of a list below the entity to which its rows belong."""
    page = partial(ListPage, resource_list=resource_list, parent=parent)
    return parent.route(resource_list.path, page, resource_list.permission)
