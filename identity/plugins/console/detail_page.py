"""The page of one resource: facts, sections, and what can be done with it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from markupsafe import Markup

from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy
from identity.plugins.console.action_page import ResourceActionPage
from identity.plugins.console.badges import Badge, state_badge
from identity.plugins.console.console_page import Breadcrumbs
from identity.plugins.console.form_fields import editable_fields
from identity.plugins.console.page_sections import ActionSection, Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import ResourcePage


class ResourceDetailPage(ResourcePage[Any]):
    """The page of a thing. Each kind declares what stands on it."""

    template = "console/detail.html"
    #: What can be done with the thing, below all else, and the heading of that.
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
        """Of what kind it is, and what places it."""
        return ()

    @property
    def badges(self) -> Sequence[Badge]:
        """How it stands."""
        return [state_badge(self.context.entity.active, self.translator)]

    @property
    def header_links(self) -> Sequence[Markup]:
        """The buttons beside the heading."""
        change = self.button_link(gettext_lazy("Change"), f"{self.resource_path}/edit", what=self.entity_name)
        return [change, *self._plugin_header_links()] if self.has_permission(f"{self.permission_subject}.write") else []

    def _plugin_header_links(self) -> Iterator[Markup]:
        return self.call_console_hook(
            "console_header_links", lambda item: self.button_link(*item), entity=self.context.entity
        )

    @property
    def descriptions(self) -> Descriptions:
        """What is known of it."""
        return ()

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        """What hangs on it."""
        return ()

    #: Settings that stand elsewhere on the page.
    hidden_fields: ClassVar[Collection[str]] = ("name", "display_name")
    #: Settings that the page calls otherwise than the form.
    label_overrides: ClassVar[Mapping[str, str]] = {}

    def field_descriptions(self, thing: Any, *first: str) -> Descriptions:
        """What people have set of a thing, in the order of its form."""
        return [
            (
                self.label_overrides.get(field.name, field.options.label),
                self.format_value(field, getattr(thing, field.name)),
            )
            for field in editable_fields(type(thing), *first)
            if field.applies_to(getattr(thing, "type", None)) and field.name not in self.hidden_fields
        ]

    def format_value(self, setting: EntityField, value: Any) -> object:
        """A value of a setting, as its type is shown; nothing where there is nothing to tell."""
        words = setting.options.value_labels
        if words:
            return words[value]
        if isinstance(value, bool):
            return gettext_lazy("Yes") if value else gettext_lazy("No")
        if isinstance(value, frozenset):
            return self.render_role_names(value) or self.render_placeholder(gettext_lazy("None"))
        return value

    def actions_section(self) -> PageSection | NoteSection | None:
        """What can be done with it, for whoever may."""
        rows = list(self.action_rows(*self.actions))
        return ActionSection("danger", self.actions_title, rows=rows) if rows else None

    def action_rows(self, *deeds: type[ResourceActionPage]) -> Iterator[tuple[str, str, Markup]]:
        """Those that whoever looks may do, as rows of a panel."""
        for kind in deeds:
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
