"""Form fields for the attributes that an organization defines, shared by console, account and registration."""

from collections.abc import Mapping, Sequence

from identity.domain.attributes import (
    MAX_ATTRIBUTE_LENGTH,
    AttributeDefinition,
    AttributeType,
    AttributeValue,
    parse_attribute,
)
from identity.pages.forms import Form
from identity.pages.translation import Translator
from identity.services.attributes import attribute_path

#: Template macro, name, label and further arguments of a field: ``ui[macro](name, label, **arguments)``.
RenderedField = tuple[str, str, str, Mapping[str, object]]

_CHECKED, _UNCHECKED = "true", "false"


class AttributeFields:
    """A field for each definition. Names of fields are the paths at which errors are reported. Labels, hints and
    choices are the organization's own words and are not translated."""

    def __init__(self, definitions: Sequence[AttributeDefinition]) -> None:
        self._by_name = {attribute_path(definition.key): definition for definition in definitions}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def format_values(self, attributes: Mapping[str, AttributeValue]) -> dict[str, str]:
        """Values of the fields for these attributes by key."""
        found = {name: attributes.get(definition.key) for name, definition in self._by_name.items()}
        return {name: _format(value) for name, value in found.items()}

    def parse(self, form: Form) -> dict[str, AttributeValue | None]:
        """The submitted attributes by key. A text that is no value of its type is returned as it is: the service says
        what is wrong with it."""
        sent = [(name, definition) for name, definition in self._by_name.items() if name in form.sent]
        return {definition.key: _parse(definition, form.text(name)) for name, definition in sent}

    def render(self, translator: Translator) -> list[RenderedField]:
        return [_render(name, definition, translator) for name, definition in self._by_name.items()]

    @staticmethod
    def describe(
        definitions: Sequence[AttributeDefinition], attributes: Mapping[str, AttributeValue], translator: Translator
    ) -> list[tuple[str, str]]:
        """Label and value of each attribute that has one, for pages that only display them."""
        present = [(definition.label, attributes.get(definition.key)) for definition in definitions]
        return [(label, _display(value, translator)) for label, value in present if value is not None]


def _format(value: AttributeValue | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return _CHECKED if value else _UNCHECKED
    return str(value)


def _display(value: AttributeValue, translator: Translator) -> str:
    if isinstance(value, bool):
        return translator.gettext("Yes") if value else translator.gettext("No")
    return str(value)


def _parse(definition: AttributeDefinition, text: str) -> AttributeValue | None:
    try:
        return parse_attribute(definition, text)
    except ValueError:
        return text


def _render(name: str, definition: AttributeDefinition, translator: Translator) -> RenderedField:
    label = definition.label
    arguments: dict[str, object] = {"hint": definition.hint}
    if definition.type in (AttributeType.CHOICE, AttributeType.BOOLEAN):
        pairs = [(choice, choice) for choice in definition.choices]
        if definition.type is AttributeType.BOOLEAN:
            pairs = [(_CHECKED, translator.gettext("Yes")), (_UNCHECKED, translator.gettext("No"))]
        empty = ("", translator.gettext("Choose …") if definition.required else translator.gettext("Not specified"))
        required = {"required": True} if definition.required else {}
        return "select_field", name, label, {**arguments, "options": [empty, *pairs], **required}
    arguments |= {"required": definition.required, "autocomplete": "off"}
    if definition.type is AttributeType.DATE:
        return "date_field", name, label, arguments
    if definition.type is AttributeType.NUMBER:
        return "field", name, label, {**arguments, "inputmode": "decimal", "variant": "date"}
    return "field", name, label, {**arguments, "maxlength": MAX_ATTRIBUTE_LENGTH}
