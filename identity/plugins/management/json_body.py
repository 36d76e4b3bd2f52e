"""Request bodies: JSON objects decoded into typed commands."""

from collections.abc import Callable, Iterator, Mapping

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.plugins.management.json_schemas import JsonObject, input_schema
from identity.services.commands import Command, CommandT, FieldPath, format_field_path
from identity.services.commands.documents import Document, decode_document

_TYPE_ERROR_MESSAGES = {
    "string": gettext_lazy("This must be a text."),
    "boolean": gettext_lazy("This must be true or false."),
    "integer": gettext_lazy("This must be a whole number."),
    "array": gettext_lazy("This must be a list."),
    "object": gettext_lazy("This must be an object."),
}
_JSON_TYPES: Mapping[str, type] = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}


def decode_members(command: type[CommandT], members: Mapping[str, object]) -> CommandT:
    """The command. Raises Invalid with a message for every invalid member.

    Types must match the published schema: unlike form fields, JSON values are not converted from text.
    """
    problems = find_type_errors(command, members, lambda path: str(path[0]))
    try:
        found = command.decode({name: value for name, value in members.items() if name not in problems})
    except Invalid as refused:
        raise Invalid({**refused.fields, **problems}) from None
    if problems:
        raise Invalid(problems)
    return found


def decode_command(command: type[Command], members: Mapping[str, object]) -> Command:
    """The command. A document is decoded as far as possible; the import reports its problems."""
    if issubclass(command, Document):
        return decode_document(command, members, find_type_errors(command, members))
    return decode_members(command, members)


def find_type_errors(
    command: type[Command],
    members: Mapping[str, object],
    name_of: Callable[[FieldPath], str] = format_field_path,
) -> Mapping[str, str]:
    """The first type error for each name, by default that of a path."""
    schema = input_schema(command)
    problems: dict[str, str] = {}
    for path, problem in _type_errors((), dict(members), schema, schema.get("$defs", {})):
        problems.setdefault(name_of(path), problem)
    return problems


def _type_errors(
    path: FieldPath, value: object, schema: JsonObject, definitions: JsonObject
) -> Iterator[tuple[FieldPath, str]]:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        # The errors of the first option, unless the value fits another one.
        found = [list(_type_errors(path, value, option, definitions)) for option in schema["anyOf"]]
        yield from found[0] if all(found) else ()
        return
    kind = schema.get("type")
    if kind is None or (kind == "null" and value is None):
        return
    if kind == "null" or not isinstance(value, _JSON_TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        yield path, _TYPE_ERROR_MESSAGES.get(kind, "")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _type_errors((*path, number), item, schema["items"], definitions)
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        for name, member in value.items():
            yield from _type_errors((*path, name), member, known.get(name, {}), definitions)
