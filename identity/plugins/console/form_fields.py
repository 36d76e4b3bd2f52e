"""FormField declares an input: label, template macro, and conversion from and to stored values."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from inspect import unwrap
from typing import TYPE_CHECKING, Any, ClassVar

from identity.domain.entity import EntityField, entity_fields
from identity.domain.key_sets import key_set_error
from identity.domain.names import domain_name_error, user_name_error
from identity.domain.projects import role_key_error
from identity.domain.validators import description_problem, email_problem, locale_problem, phone_problem
from identity.pages.forms import FieldValue, Form
from identity.pages.translation import Translator
from identity.plugins.console.field_labels import Condition, FieldLabel, Options, always

if TYPE_CHECKING:
    from identity.plugins.console.console_page import ConsolePage

#: The value of a ticked checkbox.
CHECKED_VALUE = "yes"
#: For names and URIs: turns off completion and correction in browsers.
LITERAL_INPUT_ATTRIBUTES: Mapping[str, str] = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


@dataclass(frozen=True)
class FormField:
    """A line of text. ``member_name`` is the attribute of commands and entities, if it differs from ``name``.
    ``required_message`` is the error for an empty value. ``fieldset`` is the heading of the collapsible group
    that holds the field.
    """

    macro: ClassVar[str] = "field"
    is_multi_valued: ClassVar[bool] = False

    name: str
    label: str
    hint: str = ""
    _: KW_ONLY
    required_message: str = ""
    required: bool = True
    autofocus: bool = False
    fieldset: str = ""
    member_name: str = ""
    attributes: Mapping[str, object] = field(default_factory=lambda: {"autocomplete": "off"})
    is_available: Condition = always

    @property
    def command_member(self) -> str:
        return self.member_name or self.name

    def format_value(self, value: Any) -> FieldValue:
        return "" if value is None else str(value)

    def parse_value(self, form: Form) -> object:
        """The submitted value, as commands take it."""
        return form.text(self.name)

    def is_submitted(self, form: Form) -> bool:
        """False leaves the member out of the command."""
        return True

    def macro_arguments(self, page: "ConsolePage") -> dict[str, object]:
        """Arguments of the template macro besides name and label."""
        hint = {"hint": page.translate(self.hint)} if self.hint else {}
        return {**hint, "required": self.required, "autofocus": self.autofocus, **self.attributes}

    def render(self, page: "ConsolePage") -> tuple[str, str, object, Mapping[str, object]]:
        return self.macro, self.name, page.translate(self.label), self.macro_arguments(page)


@dataclass(frozen=True, kw_only=True)
class TextArea(FormField):
    macro = "text_area"
    attributes: Mapping[str, object] = field(default_factory=lambda: {"rows": 3})


@dataclass(frozen=True, kw_only=True)
class LinesField(TextArea):
    """One value per line."""

    attributes: Mapping[str, object] = field(default_factory=lambda: {"rows": 3, **LITERAL_INPUT_ATTRIBUTES})

    def format_value(self, value: Any) -> FieldValue:
        return "\n".join(value)

    def parse_value(self, form: Form) -> object:
        return split_lines(form.text(self.name))


@dataclass(frozen=True, kw_only=True)
class NumberField(FormField):
    """A whole number. Empty leaves the member out of the command, so that it has its default or stays."""

    attributes: Mapping[str, object] = field(
        default_factory=lambda: {"variant": "date", "inputmode": "numeric", "autocomplete": "off"}
    )

    def is_submitted(self, form: Form) -> bool:
        return bool(form.text(self.name))


@dataclass(frozen=True, kw_only=True)
class Checkbox(FormField):
    macro = "check"

    def format_value(self, value: Any) -> FieldValue:
        return CHECKED_VALUE if value else ""

    def parse_value(self, form: Form) -> object:
        return bool(form.text(self.name))

    def macro_arguments(self, page: "ConsolePage") -> dict[str, object]:
        return {"hint": page.translate(self.hint)}


@dataclass(frozen=True, kw_only=True)
class SelectField(FormField):
    """Leaves the member out of the command if nothing is selected."""

    macro = "select_field"
    options: Options = field(default=lambda _: ())

    def is_submitted(self, form: Form) -> bool:
        return self.is_multi_valued or bool(form.text(self.name))

    def macro_arguments(self, page: "ConsolePage") -> dict[str, object]:
        return {"options": self.options(page), "hint": page.translate(self.hint)}


@dataclass(frozen=True, kw_only=True)
class NullableSelectField(SelectField):
    """Nothing selected clears the field."""

    def parse_value(self, form: Form) -> object:
        return form.text(self.name) or None

    def is_submitted(self, form: Form) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class RadioField(SelectField):
    """Radio buttons, each with an explanation."""

    macro = "check_group"

    def macro_arguments(self, page: "ConsolePage") -> dict[str, object]:
        return {**super().macro_arguments(page), "type": "radio"}


@dataclass(frozen=True, kw_only=True)
class NullableRadioField(RadioField, NullableSelectField):
    """Radio buttons; one without a value clears the field."""


@dataclass(frozen=True, kw_only=True)
class CheckboxGroup(SelectField):
    macro = "check_group"
    is_multi_valued = True

    def format_value(self, value: Any) -> FieldValue:
        return tuple(sorted(value))

    def parse_value(self, form: Form) -> object:
        return frozenset(form.texts(self.name))


@dataclass(frozen=True, kw_only=True)
class MinutesField(FormField):
    """A lifetime in minutes; empty for the default."""

    required: bool = False
    attributes: Mapping[str, object] = field(
        default_factory=lambda: {"variant": "date", "inputmode": "numeric", "autocomplete": "off"}
    )

    def format_value(self, value: timedelta | None) -> FieldValue:
        return "" if value is None else format_minutes(value)


def form_fields(entity: type, labels: Mapping[str, FieldLabel]) -> tuple[FormField, ...]:
    """A form field for each labelled field of the entity; collapsible groups come last."""
    fields = [form_field(entity_fields(entity)[name], label) for name, label in labels.items()]
    return tuple(sorted(fields, key=lambda form_field: bool(form_field.fieldset)))


def change_field(fields: Iterable[FormField], name: str, **changes: Any) -> tuple[FormField, ...]:
    """The fields, with these attributes changed in the one of this name."""
    return tuple(replace(field, **changes) if field.name == name else field for field in fields)


def form_field(entity_field: EntityField, label: FieldLabel) -> FormField:
    """The form field that fits the entity field's type and validator."""
    kind, validator = entity_field.type, entity_field.options.validator
    extra: dict[str, Any] = {
        "fieldset": label.section,
        "member_name": entity_field.name,
        "required_message": label.required_message,
        "is_available": label.is_available,
    }
    rule = validator and unwrap(validator)
    if label.options is not None or (label.value_labels and kind is not bool):
        # Forms send one value under the singular name.
        name = entity_field.name.removesuffix("s") if kind == frozenset[str] else entity_field.name
        options = label.options or label_options(label.value_labels)
        classes = _NULLABLE_OPTION_FIELDS if entity_field.nullable else _OPTION_FIELDS
        return classes.get(kind, classes[None])(name, label.label, label.hint, options=options, **extra)
    if kind is str and rule in _INPUT_ATTRIBUTES:
        extra["attributes"] = _INPUT_ATTRIBUTES[rule]
    field_class = TextArea if rule in (description_problem, key_set_error) else _FIELD_TYPES.get(kind, FormField)
    required = kind is str and validator is not None and validator("") is not None
    return field_class(entity_field.name, label.label, label.hint, required=required, **extra)


def label_options(labels: Mapping[Any, str]) -> Options:
    """The labelled values of a field."""
    texts = {"" if value is None else str(value): label for value, label in labels.items()}
    return lambda page: [(text, page.translate(label)) for text, label in texts.items()]


#: Field classes for sets, texts and other values with options, and for other types.
_OPTION_FIELDS: Mapping[Any, type[SelectField]] = {frozenset[str]: CheckboxGroup, str: RadioField, None: SelectField}
_NULLABLE_OPTION_FIELDS: Mapping[Any, type[SelectField]] = {
    frozenset[str]: CheckboxGroup,
    str: NullableRadioField,
    None: NullableSelectField,
}
_FIELD_TYPES: Mapping[Any, type[FormField]] = {
    bool: Checkbox,
    int: NumberField,
    timedelta: MinutesField,
    tuple[str, ...]: LinesField,
}
_INPUT_ATTRIBUTES: Mapping[Any, Mapping[str, object]] = {
    user_name_error: LITERAL_INPUT_ATTRIBUTES,
    role_key_error: LITERAL_INPUT_ATTRIBUTES,
    domain_name_error: LITERAL_INPUT_ATTRIBUTES,
    email_problem: {"type": "email", "autocomplete": "off"},
    phone_problem: {"type": "tel", "autocomplete": "off"},
    locale_problem: {"autocomplete": "off", "suggestions": tuple(Translator.LANGUAGE_NAMES.items())},
}


def format_minutes(span: timedelta) -> str:
    return f"{span / timedelta(minutes=1):.2f}".rstrip("0").rstrip(".")


def split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())
