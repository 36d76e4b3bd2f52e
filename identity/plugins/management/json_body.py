"""Bodies: JSON texts read strictly (RFC 8259, I-JSON of RFC 7493), and decoded into typed commands."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.http.errors import Malformed
from identity.plugins.management.schemas import input_schema
from identity.services.commands import Command, Decoded, decode

_WRONG_TYPES = {
    "string": say("This must be a text."),
    "boolean": say("This must be true or false."),
    "integer": say("This must be a whole number."),
    "array": say("This must be a list."),
    "object": say("This must be an object."),
}
_KINDS: Mapping[str, type] = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}


class Nothing(Command):
    """What operations without members of their own are decoded into."""


def read_object(body: bytes) -> dict[str, Any]:
    """The members of the JSON object that the body is.

    Raises Malformed for anything else: other encodings than UTF-8, members given twice, numbers that are none, texts
    that cannot be stored.
    """
    try:
        text = body.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
        _check_texts(value)
    except UnicodeError:
        raise Malformed("The body is not UTF-8.") from None
    except RecursionError:
        raise Malformed("The body is nested too deeply.") from None
    except ValueError as problem:
        raise Malformed(f"The body cannot be read as JSON: {problem}.") from None
    if not isinstance(value, dict):
        raise Malformed("The body must be a JSON object.")
    return value


def decode_members(command: type[Decoded], members: Mapping[str, Any]) -> Decoded:
    """The command. Raises Invalid with a sentence for every member that is wrong.

    Types are those of the published schema, no more: forms give every value as a text, a JSON text has no need to.
    """
    schema = input_schema(command)
    problems = {
        name: problem
        for name, value in members.items()
        if (problem := _wrong_type(value, schema["properties"].get(name, {}), schema.get("$defs", {}))) is not None
    }
    try:
        decoded = decode(command, {name: value for name, value in members.items() if name not in problems})
    except Invalid as refused:
        raise Invalid(refused.fields | problems) from None
    if problems:
        raise Invalid(problems)
    return decoded


def _wrong_type(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str | None:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        found = [_wrong_type(value, one, definitions) for one in schema["anyOf"]]
        return None if None in found else next(iter(found))
    kind = schema.get("type")
    if kind == "null":
        return None if value is None else ""
    if kind is None:
        return None
    if not isinstance(value, _KINDS[kind]) or (kind == "integer" and isinstance(value, bool)):
        return _WRONG_TYPES[kind]
    if isinstance(value, list):
        return _first(_wrong_type(one, schema["items"], definitions) for one in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return _first(_wrong_type(one, known.get(name, {}), definitions) for name, one in value.items())
    return None


def _first(problems: Iterable[str | None]) -> str | None:
    return next((one for one in problems if one is not None), None)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is given twice")
    return members


def _check_texts(value: Any) -> None:
    """Raise ValueError for a text that no storage takes: an escape may stand for NUL or for a lone surrogate."""
    if isinstance(value, str):
        value.encode("utf-8")
        if "\0" in value:
            raise ValueError("a text holds the character NUL")
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            _check_texts(part)
    elif isinstance(value, list):
        for part in value:
            _check_texts(part)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")
