"""Request bodies: JSON objects decoded into typed commands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.plugins.management.json_schemas import input_schema
from identity.services.commands import Command, Decoded, FieldPath, decode, format_field_path
from identity.services.commands.documents import Document, decode_document

_TYPE_ERROR_MESSAGES = {
    "string": gettext_lazy("This must be a text."),
    "boolean": gettext_lazy("This must be true or false."),
    "integer": gettext_lazy("This must be a whole number."),
    "array": gettext_lazy("This must be a list."),
    "object": gettext_lazy("This must be an object."),
}
_JSON_TYPES: Mapping[str, type] = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}


def decode_members(command: type[Decoded], members: Mapping[str, Any]) -> Decoded:
    """The command. Raises Invalid with a message for every invalid member.

    Types must match the published schema: unlike form fields, JSON values are not converted from text.
    """
    problems = _find_type_errors(command, members, lambda path: str(path[0]))
    try:
        found = decode(command, {name: value for name, value in members.items() if name not in problems})
    except Invalid as refused:
        raise Invalid({**refused.fields, **problems}) from None
    if problems:
        raise Invalid(problems)
    return found


def decode_command(command: type[Command], members: Mapping[str, Any]) -> Command:
    """The command. A document is decoded as far as possible; the import reports its problems."""
    if issubclass(command, Document):
        return decode_document(command, members, find_type_errors(command, members))
    return decode_members(command, members)


def find_type_errors(command: type[Command], members: Mapping[str, Any]) -> Mapping[str, str]:
    """Type errors by path."""
    return _find_type_errors(command, members, format_field_path)


def _find_type_errors(
    command: type[Command], members: Mapping[str, Any], name_of: Callable[[FieldPath], str]
) -> Mapping[str, str]:
    """The first error for each name."""
    schema = input_schema(command)
    problems: dict[str, str] = {}
    for path, problem in _object_errors((), members, schema, schema.get("$defs", {})):
        problems.setdefault(name_of(path), problem)
    return problems


def _field_type_errors(
    path: FieldPath, value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[tuple[FieldPath, str]]:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        yield from _any_of_errors(path, value, schema["anyOf"], definitions)
        return
    kind = schema.get("type")
    if kind is None or (kind == "null" and value is None):
        return
    if kind == "null" or not isinstance(value, _JSON_TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        yield path, _TYPE_ERROR_MESSAGES.get(kind, "")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _field_type_errors((*path, number), item, schema["items"], definitions)
    elif isinstance(value, dict):
        yield from _object_errors(path, value, schema, definitions)


def _any_of_errors(
    path: FieldPath, value: Any, options: list[Mapping[str, Any]], definitions: Mapping[str, Any]
) -> Iterator[tuple[FieldPath, str]]:
    """The errors of the first option, unless the value fits another one."""
    found = [list(_field_type_errors(path, value, option, definitions)) for option in options]
    if all(found):
        yield from found[0]


def _object_errors(
    path: FieldPath, value: Mapping[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[tuple[FieldPath, str]]:
    known = schema.get("properties", {})
    for name, member in value.items():
        yield from _field_type_errors((*path, name), member, known.get(name, {}), definitions)
