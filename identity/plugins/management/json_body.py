"""Bodies: the members of JSON objects, decoded into typed commands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from identity.domain.errors import Invalid
from identity.domain.words import say
from identity.plugins.management.schemas import input_schema
from identity.services.commands import Command, Decoded, Place, decode, path_of
from identity.services.commands.documents import Document, decode_document

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


def decode_members(command: type[Decoded], members: Mapping[str, Any]) -> Decoded:
    """The command. Raises Invalid with a sentence for every member that is wrong.

    Types are those of the published schema, no more: forms give every value as a text, a JSON text has no need to.
    """
    problems = _wrong_types(command, members, lambda place: str(place[0]))
    try:
        found = decode(command, {name: value for name, value in members.items() if name not in problems})
    except Invalid as refused:
        raise Invalid({**refused.fields, **problems}) from None
    if problems:
        raise Invalid(problems)
    return found


def decoded(command: type[Command], members: Mapping[str, Any]) -> Command:
    """The command, or a document as far as it can be read: whoever walks that tells what is wrong."""
    if issubclass(command, Document):
        return decode_document(command, members, wrong_types(command, members))
    return decode_members(command, members)


def wrong_types(command: type[Command], members: Mapping[str, Any]) -> Mapping[str, str]:
    """What is wrong with the types of members, by places."""
    return _wrong_types(command, members, path_of)


def _wrong_types(
    command: type[Command], members: Mapping[str, Any], name_of: Callable[[Place], str]
) -> Mapping[str, str]:
    """The sentence for each name; of several for one the first."""
    schema = input_schema(command)
    problems: dict[str, str] = {}
    for place, problem in _of_object((), members, schema, schema.get("$defs", {})):
        problems.setdefault(name_of(place), problem)
    return problems


def _wrong(
    place: Place, value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[tuple[Place, str]]:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        yield from _of_any(place, value, schema["anyOf"], definitions)
        return
    kind = schema.get("type")
    if kind is None or (kind == "null" and value is None):
        return
    if kind == "null" or not isinstance(value, _KINDS[kind]) or (kind == "integer" and isinstance(value, bool)):
        yield place, _WRONG_TYPES.get(kind, "")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _wrong((*place, number), one, schema["items"], definitions)
    elif isinstance(value, dict):
        yield from _of_object(place, value, schema, definitions)


def _of_any(
    place: Place, value: Any, options: list[Mapping[str, Any]], definitions: Mapping[str, Any]
) -> Iterator[tuple[Place, str]]:
    """What is wrong by the first option, unless another one fits."""
    found = [list(_wrong(place, value, one, definitions)) for one in options]
    if all(found):
        yield from found[0]


def _of_object(
    place: Place, value: Mapping[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[tuple[Place, str]]:
    known = schema.get("properties", {})
    for name, one in value.items():
        yield from _wrong((*place, name), one, known.get(name, {}), definitions)
