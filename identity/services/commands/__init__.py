"""Typed commands, one per change: the form, the JSON API, its document and the CLI all decode into these.

A rule about a value stands once, here or in the domain, and comes out as the same sentence everywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy

Decoded = TypeVar("Decoded", bound="Command")
#: Where something stands: names of members, and numbers in lists.
FieldPath = tuple[int | str, ...]


class Command(BaseModel):
    """Base of all commands: frozen, no unknown members, no space around texts."""

    # Built when a command is first used: to build all of them is a twentieth of a start.
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, defer_build=True)

    @classmethod
    def build(cls, **values: Any) -> Self:
        """The command with these members, of which type checkers do not know those that follow from an entity."""
        return cls(**values)


_WORDS = {
    "missing": gettext_lazy("This is required."),
    "extra_forbidden": gettext_lazy("This is not known here."),
    "string_type": gettext_lazy("This must be a text."),
    "int_type": gettext_lazy("This must be a whole number."),
    "int_parsing": gettext_lazy("This must be a whole number."),
    "time_delta_parsing": gettext_lazy("Enter a span such as 30m, 12h or 7d."),
    "tuple_type": gettext_lazy("This must be a list."),
    "frozen_set_type": gettext_lazy("This must be a list."),
    "model_type": gettext_lazy("This must be an object."),
    "bool_type": gettext_lazy("This must be true or false."),
    "bool_parsing": gettext_lazy("This must be true or false."),
    "datetime_from_date_parsing": gettext_lazy("Enter a moment such as 2027-01-31T23:59:59Z."),
    "datetime_parsing": gettext_lazy("Enter a moment such as 2027-01-31T23:59:59Z."),
    "timezone_aware": gettext_lazy("Say which time zone is meant, for example Z for UTC."),
}
#: Errors that know what could be chosen.
_CHOICES = frozenset({"enum", "literal_error"})


def decode(command: type[Decoded], values: Mapping[str, object]) -> Decoded:
    """The command made from plain values.

    Raises Invalid with a sentence for every field that is wrong.
    """
    try:
        return command.model_validate(dict(values))
    except ValidationError as problem:
        raise Invalid(field_error_messages(problem, lambda place: str(place[0]))) from None


def format_field_path(place: FieldPath) -> str:
    """How a place is written: ``projects[0].name``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def field_error_messages(problem: ValidationError, name_of: Callable[[FieldPath], str]) -> dict[str, str]:
    """The sentence for each name; of several for one the first."""
    fields: dict[str, str] = {}
    for error in problem.errors(include_url=False, include_input=False):
        name = name_of(error["loc"]) if error["loc"] else "request"
        about = error.get("ctx", {})
        if error["type"] in _CHOICES:
            choices = about["expected"].replace("'", "").replace(" or ", ", ")
            fields.setdefault(name, gettext_lazy("Choose from {names}.", names=choices))
            continue
        fields.setdefault(name, _sentence(about.get("error")) or _WORDS.get(error["type"], error["msg"] + "."))
    return fields


def _sentence(cause: object) -> str:
    """The rule's own words: a Message stays one, so that pages can translate it. The library's own are not shown."""
    if not isinstance(cause, Exception):
        return ""
    said = cause.args[0] if cause.args else None
    return said if isinstance(said, str) else str(cause)


def iter_items(value: Any) -> Iterable[tuple[Any, Any]]:
    """What an object or a list holds, by name or number; nothing for anything else."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def iter_texts(value: Any) -> Iterator[str]:
    """All texts in it."""
    if isinstance(value, str):
        yield value
    for _, one in iter_items(value):
        yield from iter_texts(one)
