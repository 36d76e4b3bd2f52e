"""The page of one resource: descriptions, sections and actions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup

from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy
from identity.plugins.console.action_page import ResourceActionPage
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import Breadcrumbs
from identity.plugins.console.field_labels import FieldLabel, labelled_values
from identity.plugins.console.page_sections import ActionSection, Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import ResourcePage


class ResourceDetailPage(ResourcePage[Any]):
    template = "console/detail.html"
    #: Actions at the bottom of the page, and their heading.
    actions: ClassVar[tuple[type[ResourceActionPage], ...]] = ()
    actions_title: ClassVar[str] = gettext_lazy("Deactivate or delete")

    @property
    def title(self) -> str:
        return self.entity_name

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return self.parent_breadcrumbs

    @property
    def lead(self) -> Sequence[str]:
        return ()

    @property
    def badges(self) -> Sequence[Badge]:
        return [state_badge(self.context.entity.active, self.translator)]

    @property
    def header_links(self) -> Sequence[Markup]:
        change = self.button_link(gettext_lazy("Change"), f"{self.resource_path}/edit", hidden_label=self.entity_name)
        return [change, *self._plugin_header_links()] if self.has_permission(f"{self.permission_subject}.write") else []

    def _plugin_header_links(self) -> Iterator[Markup]:
        return self.call_console_hook(
            "console_header_links", lambda item: self.button_link(*item), entity=self.context.entity
        )

    @property
    def descriptions(self) -> Descriptions:
        return ()

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        return ()

    #: Shown elsewhere on the page.
    hidden_fields: ClassVar[Collection[str]] = ("name", "display_name")
    #: Labels that differ from the form's.
    label_overrides: ClassVar[Mapping[str, str]] = {}

    def field_descriptions(self, entity: Any, labels: Mapping[str, FieldLabel]) -> Descriptions:
        """The labelled fields with their values, in the order of their labels."""
        return [
            (self.label_overrides.get(setting.name, label), self.format_value(setting, value))
            for setting, label, value in labelled_values(entity, labels)
            if setting.name not in self.hidden_fields
        ]

    def format_value(self, setting: EntityField, value: Any) -> object:
        """The value, or its label, formatted by the field's type."""
        if isinstance(value, bool):
            return gettext_lazy("Yes") if value else gettext_lazy("No")
        if isinstance(value, frozenset):
            return self.render_role_names(value) or self.render_placeholder(gettext_lazy("None"))
        return value

    def actions_section(self) -> PageSection | NoteSection | None:
        """The actions that the caller may run; None if there are none."""
        rows = list(self.action_rows(*self.actions))
        return ActionSection("danger", self.actions_title, rows=rows) if rows else None

    def action_rows(self, *actions: type[ResourceActionPage]) -> Iterator[tuple[str, str, Markup]]:
        """The permitted ones of these actions."""
        for kind in actions:
            page = kind(self.context, self.request)
            page.organization = self.organization
            if page.is_available and self.has_permission(kind.permission()):
                title, button = kind.action_labels
                yield title, page.description, self.button_link(button, f"{self.resource_path}{kind.path_suffix}")

    def template_variables(self) -> Mapping[str, object]:
        return {
            "lead": [self.translate(item) for item in self.lead],
            "badges": self.badges,
            "actions": self.header_links,
            "facts": self.descriptions,
            "sections_of": [*self.sections, self.actions_section()],
            "said": self.translate,
        }
