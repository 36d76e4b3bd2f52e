"""Attributes: which values a definition accepts, and how they are stored."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.attributes import (
    MAX_ATTRIBUTE_LENGTH,
    MAX_ATTRIBUTE_NUMBER,
    AttributeDefinition,
    AttributeType,
    attribute_fits,
    attribute_key_error,
    decode_attribute,
    encode_attribute,
    parse_attribute,
)
from identity.domain.claims import RESERVED_CLAIMS, own_claim_error

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CHOICES = ("Zürich", "New York", "5", "true")


def define(type_: AttributeType) -> AttributeDefinition:
    choices = CHOICES if type_ is AttributeType.CHOICE else ()
    return AttributeDefinition(
        id="1",
        organization_id="2",
        key="field",
        label="Field",
        type=type_,
        choices=choices,
        created_at=NOW,
        changed_at=NOW,
    )


TEXT, NUMBER, DATE, CHOICE, BOOLEAN = map(define, AttributeType)
#: Values that each type accepts.
VALID = {
    TEXT.type: st.text(st.characters(categories=["L", "N", "P", "S", "Zs", "M"]), min_size=1, max_size=200)
    .map(str.strip)
    .filter(bool),
    NUMBER.type: st.integers(-MAX_ATTRIBUTE_NUMBER, MAX_ATTRIBUTE_NUMBER)
    | st.floats(-MAX_ATTRIBUTE_NUMBER, MAX_ATTRIBUTE_NUMBER, allow_nan=False),
    DATE.type: st.dates().map(date.isoformat),
    CHOICE.type: st.sampled_from(CHOICES),
    BOOLEAN.type: st.booleans(),
}
JSON_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(CHOICES)
DEFINITIONS = st.sampled_from([TEXT, NUMBER, DATE, CHOICE, BOOLEAN])


@given(st.data(), DEFINITIONS)
def test_valid_value_is_stored_and_read_unchanged(data: st.DataObject, definition: AttributeDefinition) -> None:
    value = data.draw(VALID[definition.type])
    stored = encode_attribute(definition, value)
    assert decode_attribute(definition, stored) == value
    assert 0 < len(stored) <= MAX_ATTRIBUTE_LENGTH


@given(JSON_VALUES, DEFINITIONS)
def test_any_value_is_stored_in_one_way_or_refused(value: Any, definition: AttributeDefinition) -> None:
    """What is stored can be read, is JSON, and is what its own value is stored as."""
    try:
        stored = encode_attribute(definition, value)
    except ValueError:
        return
    found = decode_attribute(definition, stored)
    assert (found is None) == (stored == "") == (value is None or (isinstance(value, str) and not value.strip()))
    if found is not None:
        assert encode_attribute(definition, found) == stored
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert len(stored) <= MAX_ATTRIBUTE_LENGTH


@given(st.text(max_size=600), DEFINITIONS)
def test_text_of_a_form_is_a_valid_value_or_refused(text: str, definition: AttributeDefinition) -> None:
    try:
        stored = encode_attribute(definition, parse_attribute(definition, text))
    except ValueError:
        return
    assert (stored == "") == (not text.strip())
    # The stored text can be entered again.
    assert encode_attribute(definition, parse_attribute(definition, stored)) == stored


@given(st.text(max_size=50), DEFINITIONS)
def test_damaged_stored_text_has_no_value(stored: str, definition: AttributeDefinition) -> None:
    value = decode_attribute(definition, stored)
    assert value is None or encode_attribute(definition, value) == stored


@given(st.data(), DEFINITIONS, DEFINITIONS)
def test_stored_value_fits_another_type_only_as_the_same_text(
    data: st.DataObject, before: AttributeDefinition, after: AttributeDefinition
) -> None:
    stored = encode_attribute(before, data.draw(VALID[before.type]))
    if attribute_fits(after, stored):
        assert encode_attribute(after, decode_attribute(after, stored)) == stored
    else:
        assert after.type not in (before.type, AttributeType.TEXT)


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        (TEXT, "x" * 501),
        (TEXT, "two\nlines"),
        (TEXT, "a\u202eb"),
        (TEXT, 5),
        (TEXT, True),
        (TEXT, ["x"]),
        (NUMBER, "5"),
        (NUMBER, True),
        (NUMBER, float("nan")),
        (NUMBER, float("inf")),
        (NUMBER, MAX_ATTRIBUTE_NUMBER + 1),
        (NUMBER, 10**400),
        (DATE, "2026-02-30"),
        (DATE, "20260228"),
        (DATE, "2026-W09-6"),
        (DATE, "٢٠٢٦-٠٢-٠٣"),
        (CHOICE, "zürich"),
        (CHOICE, 5),
        (BOOLEAN, "true"),
        (BOOLEAN, 1),
    ],
)
def test_value_of_another_type_is_refused(definition: AttributeDefinition, value: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        encode_attribute(definition, value)


@pytest.mark.parametrize(
    ("definition", "text", "value"),
    [
        (NUMBER, "007", 7),
        (NUMBER, " -3.50 ", -3.5),
        (NUMBER, "-0", 0),
        (NUMBER, "1e3", 1000),
        (BOOLEAN, "yes", True),
        (BOOLEAN, "no", False),
        (CHOICE, "true", "true"),
        (TEXT, "5", "5"),
        (DATE, "0001-01-01", "0001-01-01"),
    ],
)
def test_text_of_a_form_becomes_a_typed_value(definition: AttributeDefinition, text: str, value: object) -> None:
    parsed = parse_attribute(definition, text)
    stored = encode_attribute(definition, parsed)
    found = decode_attribute(definition, stored)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["1,5", "٣", "1 000", "0x10", "1_000", "nan", "inf", "--1", "1e999", "9" * 17])
def test_other_spellings_of_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        encode_attribute(NUMBER, parse_attribute(NUMBER, text))


def test_removed_choice_has_no_value() -> None:
    assert decode_attribute(replace(CHOICE, choices=("New York",)), "Zürich") is None


@pytest.mark.parametrize("key", ["a", "cost_center", "x" * 50, "a1_"])
def test_key_is_accepted(key: str) -> None:
    assert attribute_key_error(key) is None


@pytest.mark.parametrize("key", ["", "A", "1a", "_a", "a-b", "a b", "a.b", "ä", "x" * 51, "a\n"])
def test_other_key_is_refused(key: str) -> None:
    assert attribute_key_error(key)


@pytest.mark.parametrize(
    "name", ["department", "cost-center", "acme.level", "https://acme.example/level", "DepartmentId"]
)
def test_own_claim_is_accepted(name: str) -> None:
    assert own_claim_error(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *sorted(RESERVED_CLAIMS),
        *("SUB", "Email", "email_verified", "name", "preferred_username", "updated_at"),
        *("roles", "groups", "entitlements", "permissions", "scp", "cnf", "may_act", "authorization_details"),
        *("urn:service:iam:org:project:roles", "urn:service:iam:user:metadata", "urn:x", "http://a.example/b"),
        *("", "a b", "a\n", "ä", "x" * 101, "https://", "https:///a", "https://a.example/ü", "1a", "_a"),
    ],
)
def test_reserved_or_malformed_claim_is_refused(name: str) -> None:
    assert own_claim_error(name)
