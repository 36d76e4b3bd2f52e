"""ResourcePages: the content and the actions of an entity's page, or of its tabs. DetailPage renders it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Generic

from markupsafe import Markup
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy as _
from identity.http.route_contexts import RouteContext
from identity.pages.layout import NavigationItem
from identity.plugins.console.actions import Action, action_routes, text_of
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import Breadcrumbs, ConsolePage
from identity.plugins.console.field_labels import FieldLabel, available_fields, labelled_values
from identity.plugins.console.lists import ListPreferencesPage, ListView, ResourceList, RowT, list_section
from identity.plugins.console.page_sections import ActionSection, Descriptions, NoteSection, PageSection, TableSection
from identity.plugins.console.resource_types import EntityT, ResourcePage, ResourceType
from identity.plugins.console.routes import ConsoleRoute

Sections = Sequence[PageSection | NoteSection | None]


def format_value(page: "DetailPage[Any]", entity: Any, setting: EntityField, value: object) -> object:
    """The value, or its label, formatted by the field's type."""
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, frozenset):
        return page.render_role_names(value) or page.render_placeholder(_("None"))
    if value and isinstance(value, tuple):
        return format_lines(page, value)
    return value


def format_lines(page: ConsolePage, texts: Sequence[str]) -> Markup:
    """One line for each text, with a button that copies it."""
    lines = [Markup("<div>{}</div>").format(page.template_macros.identifier(text)) for text in texts]
    return Markup().join(lines) or page.render_placeholder(_("None"))


@dataclass(frozen=True, kw_only=True)
class ResourceTab(Generic[EntityT]):
    """A part of an entity's page with an address of its own: ``path`` is relative to the entity's, empty for the first
    tab. ``permission`` is that of an Action; without it the tab is neither shown nor served.

    ``resource_list`` is a list below the entity that is shown before the ``sections``, with search and paging: see
    ``list_tab``. ``page`` is the class of a tab with a template of its own, which extends ``console/detail.html``.
    """

    label: str
    path: str = ""
    permission: str = "read"
    sections: Callable[["DetailPage[EntityT]", EntityT], Sections] = lambda page, entity: ()
    resource_list: ResourceList[Any] | None = None
    is_available: Callable[["DetailPage[EntityT]", EntityT], bool] = lambda page, entity: True
    page: "type[DetailPage[EntityT]] | None" = None

    @property
    def default_page(self) -> "type[DetailPage[EntityT]]":
        return DetailPage if self.resource_list is None else ListTabPage


def list_tab(resource_list: ResourceList[Any], **more: Any) -> ResourceTab[Any]:
    """A tab that is a list; its path, permission and label are those of the list."""
    return ResourceTab(
        label=resource_list.title,
        path=resource_list.path,
        permission=resource_list.permission,
        resource_list=resource_list,
        **more,
    )


@dataclass(frozen=True, kw_only=True)
class ResourcePages(Generic[EntityT]):
    """``lead`` are parts of the line below the heading, ``header`` the links before the button to change the entity.
    ``descriptions`` follow; with ``tabs``, at most six, they stand in a row above them, and there are no ``sections``.
    ``hidden_fields`` are not among the entity's fields in ``descriptions`` or ``sections``, because they are shown
    elsewhere. ``more_actions`` are linked in sections; ``actions`` in the menu beside the heading or, with
    ``actions_title``, in a section at the end, unless ``note`` says why there are none. ``avatar`` is the text whose
    initials stand beside the heading, in a circle for people.
    """

    type: ResourceType[EntityT]
    lead: Callable[["DetailPage[EntityT]", EntityT], Sequence[str]]
    badges: Callable[["DetailPage[EntityT]", EntityT], Sequence[Badge]]
    descriptions: Callable[["DetailPage[EntityT]", EntityT], Descriptions]
    sections: Callable[["DetailPage[EntityT]", EntityT], Sections] = lambda page, entity: ()
    header: Callable[["DetailPage[EntityT]", EntityT], Sequence[Markup]] = lambda page, entity: ()
    actions: Sequence[Action[EntityT]] = ()
    actions_title: str = ""
    tabs: Sequence[ResourceTab[EntityT]] = ()
    avatar: Callable[["DetailPage[EntityT]", EntityT], str] | None = None
    is_person: bool = False
    more_actions: Sequence[Action[EntityT]] = ()
    note: Callable[["DetailPage[EntityT]", EntityT], NoteSection | None] = lambda page, entity: None
    is_editable: bool = True
    hidden_fields: Collection[str] = ("name", "display_name")
    #: Labels that differ from the form's.
    label_overrides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    format_value: Callable[["DetailPage[EntityT]", EntityT, EntityField, object], object] = format_value

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Those of the page or its tabs, and of its actions."""
        tabs = self.tabs or (ResourceTab(label="", sections=self.sections),)
        pages = (
            self.type.route(
                tab.path,
                partial(tab.page or tab.default_page, resource_type=self.type, pages=self, tab=tab),
                tab.permission,
            )
            for tab in tabs
        )
        return *pages, *action_routes(self.type, *self.actions, *self.more_actions)


class DetailPage(ResourcePage[EntityT]):
    template = "console/detail.html"

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        resource_type: ResourceType[EntityT],
        pages: ResourcePages[EntityT],
        tab: ResourceTab[EntityT],
    ) -> None:
        super().__init__(context, request, resource_type=resource_type)
        self.pages, self.tab = pages, tab

    def early_response(self) -> Response | None:
        """Leads to the first tab instead of one that this entity does not have."""
        if not self.tab.is_available(self, self.entity):
            return self.redirect(self.resource_path)
        return super().early_response()

    @property
    def title(self) -> str:
        return self.entity_name

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return self.parent_breadcrumbs

    @property
    def title_suffix(self) -> str:
        return self.tab.label if self.tab.path else super().title_suffix

    def template_variables(self) -> Mapping[str, object]:
        pages, entity = self.pages, self.entity
        return {
            "lead": [self.translate(text) for text in pages.lead(self, entity)],
            "badges": pages.badges(self, entity),
            "mark": "" if pages.avatar is None else pages.avatar(self, entity),
            "mark_is_square": not pages.is_person,
            "actions": [*pages.header(self, entity), *self._change_links()],
            "more_items": [] if pages.actions_title else list(self._menu_items()),
            "facts": pages.descriptions(self, entity),
            "tabs": list(self._tabs()),
            "sections_of": list(self._sections()),
            "said": self.translate,
        }

    def _sections(self) -> Iterator[PageSection | NoteSection | None]:
        pages, entity, tab = self.pages, self.entity, self.tab
        yield from tab.sections(self, entity)
        if not tab.path:
            note = pages.note(self, entity)
            yield note or (
                self.action_section("danger", pages.actions_title, pages.actions) if pages.actions_title else None
            )

    def _tabs(self) -> Iterator[NavigationItem]:
        for tab in self.pages.tabs:
            if self.has_permission(self.resource_type.permission(tab.permission)) and tab.is_available(
                self, self.entity
            ):
                yield NavigationItem(
                    label=self.translate(tab.label), href=f"{self.resource_path}{tab.path}", is_current=tab is self.tab
                )

    def _menu_items(self) -> Iterator[tuple[Markup, str, Markup]]:
        """Label, path and explanation of each action in the menu."""
        if self.pages.note(self, self.entity) is not None:
            return
        for action in self.available_actions(self.pages.actions):
            text = self.translate(text_of(action.description, self))
            yield self.translate(action.button), f"{self.resource_path}{action.path}", text

    def _change_links(self) -> Iterator[Markup]:
        if self.pages.is_editable and self.has_permission(self.resource_type.permission("write")):
            yield self.button_link(_("Change"), f"{self.resource_path}/edit", hidden_label=self.entity_name)
            yield from self.call_console_hook(
                "console_header_links", lambda item: self.button_link(*item), entity=self.entity
            )

    def available_actions(self, actions: Sequence[Action[EntityT]]) -> Iterator[Action[EntityT]]:
        """Those that the entity's state and the caller's permissions allow."""
        for action in actions:
            if action.is_available(self, self.entity) and self.has_permission(
                self.resource_type.permission(action.permission)
            ):
                yield action

    def action_section(self, id: str, title: str, actions: Sequence[Action[EntityT]]) -> ActionSection | None:
        """The available actions; None if there are none."""
        rows = [
            (
                action.label,
                text_of(action.description, self),
                self.button_link(action.button, f"{self.resource_path}{action.path}"),
            )
            for action in self.available_actions(actions)
        ]
        return ActionSection(id, title, rows=rows) if rows else None

    def field_descriptions(self, entity: Any, labels: Mapping[str, FieldLabel]) -> Descriptions:
        """The labelled fields that are available with their values, in the order of their labels."""
        pages = self.pages
        names = available_fields({name: label.is_available for name, label in labels.items()}, self, entity)
        return [
            (pages.label_overrides.get(setting.name, label), pages.format_value(self, self.entity, setting, value))
            for setting, label, value in labelled_values(entity, labels)
            if setting.name in names and setting.name not in pages.hidden_fields
        ]

    def list_section(self, resource_list: ResourceList[RowT], *, lead: str = "") -> TableSection | None:
        return list_section(self, resource_list, self.resource_path, lead=lead)


class ListTabPage(DetailPage[EntityT], ListPreferencesPage):
    """A tab with a list."""

    template = "console/list_tab.html"

    @property
    def list_id(self) -> str:
        return f"{self.resource_type.path}{self.listed.path}"

    @property
    def listed(self) -> ResourceList[Any]:
        if self.tab.resource_list is None:
            raise TypeError(f"{self.request.path} has no list")
        return self.tab.resource_list

    def template_variables(self) -> Mapping[str, object]:
        path = f"{self.resource_path}{self.listed.path}"
        return {**super().template_variables(), **ListView(self, self.listed, path=path).template_variables()}


def active_badge(page: ResourcePage[Any], entity: Any) -> Sequence[Badge]:
    return [state_badge(entity.active, page.translator)]
