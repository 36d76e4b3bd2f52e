"""Strict parsing of JSON objects (RFC 8259, I-JSON of RFC 7493)."""

import json
from typing import Any

from identity.domain.messages import gettext_lazy
from identity.http.error_views import MalformedRequest

NOT_UTF8 = gettext_lazy("This is not UTF-8.")
NOT_AN_OBJECT = gettext_lazy("This must be a JSON object.")
NESTED_TOO_DEEPLY = gettext_lazy("This is nested too deeply.")
CONTAINS_NUL = gettext_lazy("The text contains a NUL character.")
NUMBER_TOO_LONG = gettext_lazy("A number is too long.")

#: Maximum length of a member name quoted in an error.
_MAX_QUOTED_NAME = 100


def parse_json_object(text: str | bytes) -> dict[str, Any]:
    """The members of a JSON object; bytes are UTF-8. Raises MalformedRequest for anything else: other encodings,
    duplicate members, NaN and Infinity, strings that cannot be stored."""
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(text, object_pairs_hook=_unique_members, parse_constant=_reject_constant)
        validate_strings(value)
    except UnicodeError:
        raise MalformedRequest(NOT_UTF8) from None
    except RecursionError:
        raise MalformedRequest(NESTED_TOO_DEEPLY) from None
    except json.JSONDecodeError as problem:
        raise MalformedRequest(syntax_error_message(problem.lineno, problem.colno)) from None
    except ValueError:
        # Python refuses numbers of thousands of digits.
        raise MalformedRequest(NUMBER_TOO_LONG) from None
    if not isinstance(value, dict):
        raise MalformedRequest(NOT_AN_OBJECT)
    return value


def syntax_error_message(line: int, column: int) -> str:
    return gettext_lazy("This is not valid JSON at line {line}, column {column}.", line=line, column=column)


def duplicate_member_message(name: str) -> str:
    return gettext_lazy("The member “{name}” appears twice.", name=name[:_MAX_QUOTED_NAME])


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise MalformedRequest(duplicate_member_message(name))
        members[name] = value
    return members


def validate_strings(value: Any) -> None:
    """Refuse strings that no storage accepts: an escape may stand for NUL or for a lone surrogate. Raises
    MalformedRequest, UnicodeError."""
    if isinstance(value, str):
        value.encode("utf-8")
        if "\0" in value:
            raise MalformedRequest(CONTAINS_NUL)
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            validate_strings(part)
    elif isinstance(value, list):
        for part in value:
            validate_strings(part)


def _reject_constant(name: str) -> Any:
    raise MalformedRequest(gettext_lazy("{name} is not a number.", name=name))
