"""Typed commands, one per change: forms, the JSON API, documents and the CLI are all decoded into these.

Each rule about a value is declared once, here or in the domain, and has the same message everywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy

CommandT = TypeVar("CommandT", bound="Command")
#: Path to a value: names of members and indexes of lists.
FieldPath = tuple[int | str, ...]


class Command(BaseModel):
    """Base of all commands: frozen, without unknown members, with trimmed texts."""

    # Built on first use: building all of them takes five percent of the start.
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, defer_build=True)

    @classmethod
    def decode(cls, values: Mapping[str, object]) -> Self:
        """The command from plain values. Raises Invalid with a message for every wrong field."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as problem:
            raise Invalid(field_error_messages(problem, lambda path: str(path[0]))) from None

    @classmethod
    def build(cls, **values: Any) -> Self:
        """The command with these members, including those derived from an entity, which type checkers do not know."""
        return cls(**values)


_MESSAGES = {
    "missing": gettext_lazy("This is required."),
    "extra_forbidden": gettext_lazy("This is not known here."),
    "string_type": gettext_lazy("This must be a text."),
    "int_type": gettext_lazy("This must be a whole number."),
    "int_parsing": gettext_lazy("This must be a whole number."),
    "time_delta_parsing": gettext_lazy("Enter a duration such as 30m, 12h or 7d."),
    "tuple_type": gettext_lazy("This must be a list."),
    "frozen_set_type": gettext_lazy("This must be a list."),
    "model_type": gettext_lazy("This must be an object."),
    "bool_type": gettext_lazy("This must be true or false."),
    "bool_parsing": gettext_lazy("This must be true or false."),
    "datetime_from_date_parsing": gettext_lazy("Enter a date and time such as 2027-01-31T23:59:59Z."),
    "datetime_parsing": gettext_lazy("Enter a date and time such as 2027-01-31T23:59:59Z."),
    # No text of a command has another minimum.
    "string_too_short": gettext_lazy("This is required."),
    "timezone_aware": gettext_lazy("Include the time zone, for example Z for UTC."),
}
#: Errors about a number or length, by the template of their message.
_BOUNDS = {
    "greater_than_equal": gettext_lazy("Enter a number of at least {n}.").template,
    "less_than_equal": gettext_lazy("Enter a number of at most {n}.").template,
    "string_too_long": gettext_lazy("This is too long: the limit is {n}.").template,
}
#: Errors that list the allowed values.
_CHOICES = frozenset({"enum", "literal_error"})


def format_field_path(path: FieldPath) -> str:
    """The path as text: ``projects[0].name``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def field_error_messages(problem: ValidationError, name_of: Callable[[FieldPath], str]) -> dict[str, str]:
    """The first message for each name."""
    fields: dict[str, str] = {}
    for error in problem.errors(include_url=False, include_input=False):
        name = name_of(error["loc"]) if error["loc"] else "request"
        about = error.get("ctx", {})
        if error["type"] in _CHOICES:
            choices = about["expected"].replace("'", "").replace(" or ", ", ")
            fields.setdefault(name, gettext_lazy("Choose from {names}.", names=choices))
            continue
        bound = _BOUNDS.get(error["type"])
        if bound is not None:
            fields.setdefault(name, gettext_lazy(bound, n=next(iter(about.values()))))
            continue
        fields.setdefault(name, _sentence(about.get("error")) or _MESSAGES.get(error["type"], error["msg"] + "."))
    return fields


def _sentence(cause: object) -> str:
    """The rule's own message, kept as a Message so that pages can translate it. Messages of the library are not
    shown."""
    if not isinstance(cause, Exception):
        return ""
    message = cause.args[0] if cause.args else None
    return message if isinstance(message, str) else str(cause)


def iter_items(value: Any) -> Iterable[tuple[Any, Any]]:
    """The items of an object or a list, by name or index; empty for any other value."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def iter_texts(value: Any) -> Iterator[str]:
    """All texts in the value, at any depth."""
    if isinstance(value, str):
        yield value
    for _, member in iter_items(value):
        yield from iter_texts(member)
