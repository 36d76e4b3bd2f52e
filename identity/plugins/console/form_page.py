"""Console pages with declared fields; CreatePage and EditPage cover most of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.http.route_contexts import RouteContext
from identity.pages.forms import FieldValue, Form
from identity.pages.page import FormPage
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.field_labels import available_fields
from identity.plugins.console.form_fields import FormField
from identity.services.commands import CommandT


class ConsoleFormPage(ConsolePage, FormPage):
    template = "console/form.html"
    #: In the order of the page. Custom templates may render a part of them.
    form_fields: tuple[FormField, ...] = ()

    def __init__(self, context: RouteContext, request: Request) -> None:
        super().__init__(context, request)
        if self.form_fields:
            first, *following = self.form_fields
            self.form_fields = (replace(first, autofocus=True), *following)
            self.fields = tuple(field.name for field in self.form_fields)
            self.repeated_fields = frozenset(field.name for field in self.form_fields if field.is_multi_valued)
            self.field_aliases = {field.command_member: field.name for field in self.form_fields}

    #: The field and value with which all collapsible groups are open.
    disclosure_condition: ClassVar[tuple[str, str]] = ("", "")

    @property
    def lead(self) -> str:
        return ""

    @property
    def submit_label(self) -> str:
        return _("Save")

    @property
    def cancel_path(self) -> str:
        return self.breadcrumbs[-1][1]

    @property
    def success_path(self) -> str:
        return self.cancel_path

    #: The entity that is changed; None for a new one.
    stored: Any = None

    def visible_fields(self) -> Sequence[FormField]:
        """The fields that the caller may fill in."""
        conditions = {field.command_member: field.is_available for field in self.form_fields}
        names = available_fields(conditions, self, self.stored)
        return [field for field in self.form_fields if field.command_member in names]

    def template_variables(self) -> Mapping[str, object]:
        drawn = self.visible_fields()
        parts = dict.fromkeys(field.fieldset for field in drawn)
        return {
            "inputs": [
                (self.translate(part), [field.render(self) for field in drawn if field.fieldset == part])
                for part in parts
            ],
            "opened_by": self.disclosure_condition,
            "about": self.translate(self.lead),
            "label": self.translate(self.submit_label),
            "back": self.cancel_path,
        }

    def entity_values(self, entity: Any) -> dict[str, FieldValue]:
        """Form values of a stored entity, with its version."""
        values = {
            field.name: field.format_value(getattr(entity, field.command_member)) for field in self.visible_fields()
        }
        return {**values, Form.VERSION_FIELD: str(entity.version)}

    def parse_form(self, form: Form) -> dict[str, object]:
        """The submitted values, as commands take them."""
        return {
            field.command_member: field.parse_value(form) for field in self.visible_fields() if field.is_submitted(form)
        }

    def decode_command(self, command: type[CommandT], values: Mapping[str, object]) -> CommandT:
        """The command for these values. Raises Invalid; errors for empty fields name the field."""
        try:
            return command.decode(values)
        except Invalid as refused:
            missing = {
                field.command_member: field.required_message for field in self.form_fields if field.required_message
            }
            empty = {name: missing[name] for name in refused.fields if name in missing and not values.get(name)}
            raise Invalid({**refused.fields, **empty}) from None

    def render_secret(
        self, title: str, secret: str, client_id: str = "", back: str = "", copy_label: str = ""
    ) -> Response:
        """The page that shows a new secret; ``copy_label`` is the heading of secrets of other kinds than those of
        clients and tokens. It is in this response only, so there is no redirect."""
        return self.render(
            {
                "title": self.translate(title),
                "client_id": client_id,
                "secret": secret,
                "copy_label": self.translate(copy_label),
                "back": back or self.cancel_path,
            },
            template="console/client_secret_created.html",
        )

    def build_command(self, command: type[CommandT], form: Form, /, **known: object) -> CommandT:
        """The command for the form and ``known`` further members. Raises Invalid."""
        return self.decode_command(command, {**self.parse_form(form), **known})
