"""Form fields for policy rules: each rule is set or inherited."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from identity.domain.entity import entity_fields
from identity.domain.messages import gettext_lazy as _
from identity.domain.policies import Policy
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.field_labels import FieldLabel, Options
from identity.plugins.console.fields.policies import POLICY_FIELDS, SIGN_IN
from identity.plugins.console.form_fields import CHECKED_VALUE, CheckboxGroup, FormField, LinesField, SelectField

_NO = "no"
_SPAN = re.compile(r"([0-9]{1,6}) ?([smhd])\Z")
_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}


def format_duration(span: timedelta) -> str:
    """The duration in the form's syntax: 7d, 12h, 30m, 90s."""
    unit = next(unit for unit, item in _UNITS.items() if not span % item)
    return f"{span // _UNITS[unit]}{unit}"


@dataclass(frozen=True, kw_only=True)
class RuleSelectField(SelectField):
    """One value of a rule, or inherited."""

    kind: Any = str

    def is_submitted(self, form: Form) -> bool:
        return True

    def format_value(self, value: Any) -> FieldValue:
        if isinstance(value, bool):
            return CHECKED_VALUE if value else _NO
        return "" if value is None else str(value)

    def parse_value(self, form: Form) -> object:
        text = form.text(self.name)
        if self.kind is bool and text in (CHECKED_VALUE, _NO):
            return text == CHECKED_VALUE
        return text or None


@dataclass(frozen=True, kw_only=True)
class RuleCheckboxGroup(CheckboxGroup):
    """Several values; none is inherited."""

    def format_value(self, value: Any) -> FieldValue:
        return tuple(value or ())

    def parse_value(self, form: Form) -> object:
        return form.texts(self.name) or None


@dataclass(frozen=True, kw_only=True)
class RuleLinesField(LinesField):
    """One value per line; empty is inherited."""

    def format_value(self, value: Any) -> FieldValue:
        return super().format_value(value or ())

    def parse_value(self, form: Form) -> object:
        return super().parse_value(form) or None


@dataclass(frozen=True, kw_only=True)
class RuleTextField(FormField):
    """A number; empty is inherited."""

    def parse_value(self, form: Form) -> object:
        return form.text(self.name).strip() or None


@dataclass(frozen=True, kw_only=True)
class RuleDurationField(RuleTextField):
    """A duration such as 30m, 12h or 7d."""

    def format_value(self, value: timedelta | None) -> FieldValue:
        return "" if value is None else format_duration(value)

    def parse_value(self, form: Form) -> object:
        text = form.text(self.name).strip()
        match = _SPAN.match(text)
        # The command's decoder refuses this value.
        return int(match[1]) * _UNITS[match[2]] if match else (f"={text}" if text else None)


def rule_values(name: str) -> Sequence[Any]:
    """The possible values, if the rule has a finite number."""
    return [value for value in POLICY_FIELDS[name].value_labels if value is not None]


def rule_fields() -> tuple[FormField, ...]:
    """A field for each rule; rules that are not about sign-in are in collapsible groups by subject."""
    return tuple(_rule_field(name, label) for name, label in POLICY_FIELDS.items())


def _rule_field(name: str, label: FieldLabel) -> FormField:
    kind = entity_fields(Policy)[name].type
    extra: dict[str, Any] = {
        "fieldset": "" if label.section == SIGN_IN else label.section,
        "member_name": name,
        "is_available": label.is_available,
    }
    if label.value_labels:
        return RuleSelectField(name, label.label, label.hint, options=_rule_options(name, label), kind=kind, **extra)
    if name == "factors":
        return RuleCheckboxGroup(
            "factor", label.label, label.hint, options=lambda page: page.sign_in_method_options(), **extra
        )
    if kind == tuple[str, ...]:
        return RuleLinesField(name, label.label, label.hint, required=False, **extra)
    number = {"variant": "date", "autocomplete": "off"}
    field_class = RuleDurationField if kind is timedelta else RuleTextField
    return field_class(name, label.label, label.hint, required=False, attributes=number, **extra)


def _rule_options(name: str, label: FieldLabel) -> Options:
    def options(page: Any) -> Sequence[tuple[str, object]]:
        format_value = RuleSelectField("", "").format_value
        allowed = [rule_value for rule_value in rule_values(name) if page.is_value_allowed(name, rule_value)]
        inherited = page.translator.gettext(_("As above: {rule}", rule=page.inherited_value(name)))
        return [
            ("", inherited),
            *[(str(format_value(item)), page.translate(label.value_labels[item])) for item in allowed],
        ]

    return options
