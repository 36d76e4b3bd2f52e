"""Labelled entity fields appear in forms and on pages without further declarations."""

from datetime import timedelta
from enum import StrEnum

import pytest

from identity.domain.entity import create_only, entity, mutable, read_only
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, user_name_error
from identity.domain.validators import allow_empty, description_problem, email_problem
from identity.plugins.console.form_fields import (
    LITERAL_INPUT_ATTRIBUTES,
    Checkbox,
    CheckboxGroup,
    FormField,
    LinesField,
    MinutesField,
    SelectField,
    TextArea,
    form_fields,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@entity
class ExampleEntity:
    """An entity with a field of each type."""

    id: str = read_only()
    key: str = create_only(validator=user_name_error, label=gettext_lazy("Key"), missing=gettext_lazy("Enter a key."))
    title: str = mutable(validator=display_name_error, label=gettext_lazy("Title"), hint=gettext_lazy("On its cover."))
    wordless: str = mutable(default="")
    about: str = mutable(default="", validator=description_problem, label=gettext_lazy("About"))
    email: str = mutable(default="", validator=allow_empty(email_problem), label=gettext_lazy("Email"))
    loud: bool = mutable(default=False, section=gettext_lazy("More"), label=gettext_lazy("Loud"))
    lasts: timedelta | None = mutable(default=None, label=gettext_lazy("Lasts"))
    colour: Colour = mutable(
        default=Colour.RED,
        label=gettext_lazy("Colour"),
        value_labels={Colour.RED: gettext_lazy("Red"), Colour.BLUE: gettext_lazy("Blue")},
    )
    labels: frozenset[str] = mutable(default=frozenset(), label=gettext_lazy("Labels"))
    addresses: tuple[str, ...] = mutable(default=(), label=gettext_lazy("Addresses"))


FIELDS = {
    form_field.command_member: form_field
    for form_field in form_fields(ExampleEntity, "title", options={"labels": lambda _: [("a", "A")]})
}


def test_labelled_mutable_fields_become_form_fields_in_order() -> None:
    assert list(FIELDS) == ["title", "key", "about", "email", "lasts", "colour", "labels", "addresses", "loud"]
    assert FIELDS["labels"].name == "label"
    assert (FIELDS["title"].hint, FIELDS["key"].required_message, FIELDS["loud"].fieldset) == (
        "On its cover.",
        "Enter a key.",
        "More",
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("key", FormField),
        ("about", TextArea),
        ("loud", Checkbox),
        ("lasts", MinutesField),
        ("colour", SelectField),
        ("labels", CheckboxGroup),
        ("addresses", LinesField),
    ],
)
def test_field_type_selects_form_field(name: str, kind: type[FormField]) -> None:
    assert type(FIELDS[name]) is kind


def test_validator_sets_required_and_input_attributes() -> None:
    assert {
        name for name, form_field in FIELDS.items() if form_field.required and not isinstance(form_field, SelectField)
    } == {
        "title",
        "key",
    }
    assert FIELDS["key"].attributes == LITERAL_INPUT_ATTRIBUTES
    assert FIELDS["email"].attributes["type"] == "email"
