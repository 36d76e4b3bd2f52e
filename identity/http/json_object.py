"""JSON objects that programs and people send, read strictly (RFC 8259, I-JSON of RFC 7493)."""

import json
from typing import Any

from identity.domain.words import say
from identity.http.errors import Malformed

NO_UTF8 = say("This is not UTF-8.")
NO_OBJECT = say("This must be a JSON object.")
NESTED_TOO_DEEPLY = say("This is nested too deeply.")
HOLDS_NUL = say("A text holds the character NUL.")
NUMBER_TOO_LONG = say("A number is too long.")

#: How much of a name is told back.
_SHOWN = 100


def read_object(text: str | bytes) -> dict[str, Any]:
    """The members of the JSON object that the text is; bytes are UTF-8.

    Raises Malformed for anything else: other encodings, members given twice, numbers that are none, texts that cannot
    be stored.
    """
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
        check_texts(value)
    except UnicodeError:
        raise Malformed(NO_UTF8) from None
    except RecursionError:
        raise Malformed(NESTED_TOO_DEEPLY) from None
    except json.JSONDecodeError as problem:
        raise Malformed(unreadable(problem.lineno, problem.colno)) from None
    except ValueError:
        # Python reads no number of thousands of digits.
        raise Malformed(NUMBER_TOO_LONG) from None
    if not isinstance(value, dict):
        raise Malformed(NO_OBJECT)
    return value


def unreadable(line: int, column: int) -> str:
    """Where the text stops being JSON."""
    return say("This cannot be read as JSON from line {line}, column {column} on.", line=line, column=column)


def given_twice(name: str) -> str:
    """Which member it is."""
    return say("The member “{name}” is given twice.", name=name[:_SHOWN])


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise Malformed(given_twice(name))
        members[name] = value
    return members


def check_texts(value: Any) -> None:
    """Look for texts that no storage takes: an escape may stand for NUL or for a lone surrogate.

    Raises Malformed, UnicodeError.
    """
    if isinstance(value, str):
        value.encode("utf-8")
        if "\0" in value:
            raise Malformed(HOLDS_NUL)
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            check_texts(part)
    elif isinstance(value, list):
        for part in value:
            check_texts(part)


def _no_number(name: str) -> Any:
    raise Malformed(say("{name} is no number.", name=name))
