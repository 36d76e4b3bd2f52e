"""Entity fields appear in forms and on pages with their labels, or else with their names."""

from datetime import timedelta
from enum import StrEnum

import pytest

from identity.domain.entity import create_only, entity, mutable, read_only
from identity.domain.names import display_name_error, user_name_error
from identity.domain.validators import allow_empty, description_problem, email_problem
from identity.plugins.console.field_labels import FieldLabel, labelled_fields, labelled_values
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
    key: str = create_only(validator=user_name_error)
    title: str = mutable(validator=display_name_error)
    hidden_field: str = mutable(default="")
    about: str = mutable(default="", validator=description_problem)
    email: str = mutable(default="", validator=allow_empty(email_problem))
    loud: bool = mutable(default=False)
    lasts: timedelta | None = mutable(default=None)
    colour: Colour = mutable(default=Colour.RED)
    labels: frozenset[str] = mutable(default=frozenset())
    addresses: tuple[str, ...] = mutable(default=())
    reads_aloud: bool = mutable(default=False)


LABELS = labelled_fields(
    ExampleEntity,
    {
        "title": FieldLabel("Title", "On its cover."),
        "key": FieldLabel("Key", required_message="Enter a key."),
        "about": FieldLabel("About"),
        "loud": FieldLabel("Loud", section="More"),
        "email": FieldLabel("Email"),
        "lasts": FieldLabel("Lasts"),
        "colour": FieldLabel("Colour", value_labels={Colour.RED: "Red", Colour.BLUE: "Blue"}),
        "labels": FieldLabel("Labels", options=lambda _: [("a", "A")]),
        "addresses": FieldLabel("Addresses"),
    },
    hidden=("hidden_field",),
)
FIELDS = {form_field.command_member: form_field for form_field in form_fields(ExampleEntity, LABELS)}


def test_labelled_fields_become_form_fields_in_order_with_groups_last() -> None:
    assert list(FIELDS) == [
        *("title", "key", "about", "email", "lasts", "colour", "labels", "addresses"),
        *("loud", "reads_aloud"),
    ]
    assert FIELDS["labels"].name == "label"
    assert (FIELDS["title"].hint, FIELDS["key"].required_message, FIELDS["loud"].fieldset) == (
        "On its cover.",
        "Enter a key.",
        "More",
    )


def test_field_without_label_is_named_after_itself_in_the_last_section() -> None:
    assert (FIELDS["reads_aloud"].label, FIELDS["reads_aloud"].fieldset) == ("Reads aloud", "More")
    assert labelled_fields(ExampleEntity, {})["key"] == FieldLabel("Key")


def test_labelled_values_are_those_that_the_type_uses() -> None:
    example = ExampleEntity(id="1", key="k", title="T", labels=frozenset({"a"}))
    values = {field.name: (label, value) for field, label, value in labelled_values(example, LABELS)}
    assert list(values) == list(LABELS)
    assert (values["title"], values["colour"]) == (("Title", "T"), ("Colour", "Red"))


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
