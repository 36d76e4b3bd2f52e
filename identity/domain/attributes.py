"""Attributes: typed fields that an organization defines for its people, and their values."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum

from identity.domain.claims import own_claim_error
from identity.domain.entity import create_only, entity, mutable, read_only, versioned
from identity.domain.messages import gettext_lazy
from identity.domain.names import display_name_error, is_printable
from identity.domain.validators import allow_empty, text_problem

#: Attributes per organization.
MAX_ATTRIBUTES = 50
MAX_CHOICES = 100
MAX_ATTRIBUTE_LENGTH = 500
_MAX_CHOICE_LENGTH = 100
#: JSON parsers agree on integers up to this one (RFC 8259 §6).
MAX_ATTRIBUTE_NUMBER = 2**53 - 1

_KEY = re.compile(r"[a-z][a-z0-9_]{0,49}\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_INTEGER = re.compile(r"-?[0-9]{1,16}\Z")
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?\Z")

#: A value, as in JSON. Dates are texts.
AttributeValue = str | int | float | bool


class AttributeType(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    CHOICE = "choice"
    BOOLEAN = "boolean"


class AttributeAccess(StrEnum):
    """Who sees or changes the value of a person."""

    MANAGERS = "managers"
    #: Managers and the person.
    PERSON = "person"


def attribute_key_error(key: str) -> str | None:
    if _KEY.match(key):
        return None
    return gettext_lazy("Use up to 50 lower-case letters, digits and underscores; begin with a letter.")


def _choice_error(choice: str) -> str | None:
    if not choice.strip() or len(choice) > _MAX_CHOICE_LENGTH or not is_printable(choice):
        return gettext_lazy("Use 1 to {length} printable characters for each choice.", length=_MAX_CHOICE_LENGTH)
    return None


def _choices_error(choices: Sequence[str]) -> str | None:
    if len(choices) > MAX_CHOICES:
        return gettext_lazy("Enter at most {n} choices.", n=MAX_CHOICES)
    if len(set(choices)) < len(choices):
        return gettext_lazy("Enter each choice once.")
    return None


@entity
class AttributeDefinition:
    """A field of all people of an organization. ``key`` never changes. ``required`` asks for a value where accounts are
    created and refuses to empty it; accounts from before may lack one. ``confidential`` keeps values out of the audit
    trail. ``in_tokens`` releases the value with the scope ``…:user:metadata``, and as the claim ``claim`` if set."""

    id: str = read_only()
    organization_id: str = read_only()
    key: str = create_only(validator=attribute_key_error)
    label: str = mutable(validator=display_name_error)
    hint: str = mutable(default="", validator=text_problem)
    type: AttributeType = mutable(default=AttributeType.TEXT)
    choices: tuple[str, ...] = mutable(
        default=(), validator=_choices_error, item_validator=_choice_error, types=frozenset({AttributeType.CHOICE})
    )
    required: bool = mutable(default=False)
    visible_to: AttributeAccess = mutable(default=AttributeAccess.MANAGERS)
    editable_by: AttributeAccess = mutable(default=AttributeAccess.MANAGERS)
    confidential: bool = mutable(default=False)
    in_tokens: bool = mutable(default=False)
    claim: str = mutable(default="", validator=allow_empty(own_claim_error))
    created_at: datetime = versioned()
    changed_at: datetime = versioned()
    version: int = versioned(default=1)

    @property
    def is_visible_to_person(self) -> bool:
        return self.visible_to is AttributeAccess.PERSON

    @property
    def is_editable_by_person(self) -> bool:
        return self.editable_by is AttributeAccess.PERSON and self.is_visible_to_person


@entity
class StoredAttribute:
    """The value of one person, as text: see ``encode_attribute``."""

    user_id: str = read_only()
    definition_id: str = read_only()
    value: str = read_only()


def encode_attribute(definition: AttributeDefinition, value: object) -> str:
    """The value as stored, empty for no value. Each type has one text for each value. Raises ValueError with a
    sentence about what is wrong."""
    if isinstance(value, str):
        value = value.strip()
    if value is None or value == "":
        return ""
    if definition.type is AttributeType.NUMBER:
        return _encode_number(value)
    if definition.type is AttributeType.BOOLEAN:
        if not isinstance(value, bool):
            raise ValueError(gettext_lazy("Choose yes or no."))
        return "true" if value else "false"
    if not isinstance(value, str):
        raise ValueError(gettext_lazy("This must be a text."))
    sentence = _TEXT_ERRORS[definition.type](definition, value)
    if sentence is not None:
        raise ValueError(sentence)
    return value


def decode_attribute(definition: AttributeDefinition, stored: str) -> AttributeValue | None:
    """The stored value; None if it does not fit the definition."""
    try:
        value = parse_attribute(definition, stored)
        return value if value is not None and encode_attribute(definition, value) == stored else None
    except ValueError:
        return None


def parse_attribute(definition: AttributeDefinition, text: str) -> AttributeValue | None:
    """The value that a text from a form or a table stands for; None for no value. ``encode_attribute`` validates it.
    Raises ValueError with a sentence."""
    text = text.strip()
    if not text:
        return None
    if definition.type is AttributeType.NUMBER:
        return _parse_number(text)
    if definition.type is AttributeType.BOOLEAN:
        if text not in _BOOLEANS:
            raise ValueError(gettext_lazy("Choose yes or no."))
        return _BOOLEANS[text]
    return text


def attribute_fits(definition: AttributeDefinition, stored: str) -> bool:
    """True if a stored value is one of this definition, too."""
    return decode_attribute(definition, stored) is not None


_BOOLEANS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


def _parse_number(text: str) -> int | float:
    if _INTEGER.match(text):
        return int(text)
    if not _NUMBER.match(text):
        raise ValueError(gettext_lazy("Enter a number such as 12 or 3.5."))
    return float(text)


def _encode_number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(gettext_lazy("Enter a number such as 12 or 3.5."))
    # False for NaN, too.
    if not -MAX_ATTRIBUTE_NUMBER <= value <= MAX_ATTRIBUTE_NUMBER:
        raise ValueError(gettext_lazy("Enter a number between −{limit} and {limit}.", limit=MAX_ATTRIBUTE_NUMBER))
    return json.dumps(int(value) if value == int(value) else value)


def _text_error(definition: AttributeDefinition, text: str) -> str | None:
    if len(text) > MAX_ATTRIBUTE_LENGTH:
        return gettext_lazy("Use at most {length} characters.", length=MAX_ATTRIBUTE_LENGTH)
    return None if is_printable(text) else gettext_lazy("Use printable characters only.")


def _date_error(definition: AttributeDefinition, text: str) -> str | None:
    wrong = gettext_lazy("Enter a date such as 1990-12-31.")
    if not _DATE.match(text):
        return wrong
    try:
        date.fromisoformat(text)
    except ValueError:
        return wrong
    return None


def _no_choice_error(definition: AttributeDefinition, text: str) -> str | None:
    return None if text in definition.choices else gettext_lazy("Choose one of the listed values.")


_TEXT_ERRORS = {
    AttributeType.TEXT: _text_error,
    AttributeType.DATE: _date_error,
    AttributeType.CHOICE: _no_choice_error,
}
