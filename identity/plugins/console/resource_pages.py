"""ResourcePages: the content and the actions of an entity's page. DetailPage renders it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Generic

from markupsafe import Markup
from pyramid.request import Request

from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy as _
from identity.http.route_contexts import RouteContext
from identity.plugins.console.actions import Action, action_routes, text_of
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import Breadcrumbs
from identity.plugins.console.field_labels import FieldLabel, labelled_values
from identity.plugins.console.lists import ResourceList, RowT, list_section
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
    return value


@dataclass(frozen=True, kw_only=True)
class ResourcePages(Generic[EntityT]):
    """``lead`` are parts of the line below the heading, ``header`` the links before the button to change the entity.
    ``hidden_fields`` are not among the entity's fields in ``descriptions`` or ``sections``, because they are shown
    elsewhere. ``more_actions`` are linked in sections; ``actions`` at the end, unless ``note`` says why there are none.
    """

    type: ResourceType[EntityT]
    lead: Callable[["DetailPage[EntityT]", EntityT], Sequence[str]]
    badges: Callable[["DetailPage[EntityT]", EntityT], Sequence[Badge]]
    descriptions: Callable[["DetailPage[EntityT]", EntityT], Descriptions]
    sections: Callable[["DetailPage[EntityT]", EntityT], Sections] = lambda page, entity: ()
    header: Callable[["DetailPage[EntityT]", EntityT], Sequence[Markup]] = lambda page, entity: ()
    actions: Sequence[Action[EntityT]] = ()
    actions_title: str = _("Deactivate or delete")
    more_actions: Sequence[Action[EntityT]] = ()
    note: Callable[["DetailPage[EntityT]", EntityT], NoteSection | None] = lambda page, entity: None
    is_editable: bool = True
    hidden_fields: Collection[str] = ("name", "display_name")
    #: Labels that differ from the form's.
    label_overrides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    format_value: Callable[["DetailPage[EntityT]", EntityT, EntityField, object], object] = format_value

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Those of the page and of its actions."""
        page = partial(DetailPage, resource_type=self.type, pages=self)
        return self.type.route("", page, "read"), *action_routes(self.type, *self.actions, *self.more_actions)


class DetailPage(ResourcePage[EntityT]):
    template = "console/detail.html"

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        resource_type: ResourceType[EntityT],
        pages: ResourcePages[EntityT],
    ) -> None:
        super().__init__(context, request, resource_type=resource_type)
        self.pages = pages

    @property
    def title(self) -> str:
        return self.entity_name

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return self.parent_breadcrumbs

    def template_variables(self) -> Mapping[str, object]:
        pages, entity = self.pages, self.entity
        return {
            "lead": [self.translate(text) for text in pages.lead(self, entity)],
            "badges": pages.badges(self, entity),
            "actions": [*pages.header(self, entity), *self._change_links()],
            "facts": pages.descriptions(self, entity),
            "sections_of": [*pages.sections(self, entity), self._actions_section()],
            "said": self.translate,
        }

    def _change_links(self) -> Iterator[Markup]:
        if self.pages.is_editable and self.has_permission(self.resource_type.permission("write")):
            yield self.button_link(_("Change"), f"{self.resource_path}/edit", hidden_label=self.entity_name)
            yield from self.call_console_hook(
                "console_header_links", lambda item: self.button_link(*item), entity=self.entity
            )

    def _actions_section(self) -> PageSection | NoteSection | None:
        note = self.pages.note(self, self.entity)
        return note or self.action_section("danger", self.pages.actions_title, self.pages.actions)

    def action_section(self, id: str, title: str, actions: Sequence[Action[EntityT]]) -> ActionSection | None:
        """Those of the actions that the entity's state and the caller's permissions allow; None if there are none."""
        rows = [
            (
                action.label,
                text_of(action.description, self),
                self.button_link(action.button, f"{self.resource_path}{action.path}"),
            )
            for action in actions
            if action.is_available(self, self.entity)
            and self.has_permission(self.resource_type.permission(action.permission))
        ]
        return ActionSection(id, title, rows=rows) if rows else None

    def field_descriptions(self, entity: Any, labels: Mapping[str, FieldLabel]) -> Descriptions:
        """The labelled fields with their values, in the order of their labels."""
        pages = self.pages
        return [
            (pages.label_overrides.get(setting.name, label), pages.format_value(self, self.entity, setting, value))
            for setting, label, value in labelled_values(entity, labels)
            if setting.name not in pages.hidden_fields
        ]

    def list_section(self, resource_list: ResourceList[RowT], *, lead: str = "") -> TableSection | None:
        return list_section(self, resource_list, self.resource_path, lead=lead)


def active_badge(page: ResourcePage[Any], entity: Any) -> Sequence[Badge]:
    return [state_badge(entity.active, page.translator)]
