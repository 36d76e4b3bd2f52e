"""Representation: how a thing looks to clients of the API; the model doubles as the schema in the document."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, create_model

from identity.domain.entity import entity_fields
from identity.domain.expirations import NEVER, NEVER_TEXT

#: A moment in UTC and whole seconds (RFC 3339).
DateTime = AwareDatetime


def _format_expiration(moment: datetime) -> datetime | str:
    return NEVER_TEXT if moment == NEVER else moment


def _state(active: bool) -> str:
    return "active" if active else "deactivated"


def _sort_values(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


#: When something ends.
Expiration = Annotated[DateTime | Literal["never"], BeforeValidator(_format_expiration)]
ActiveState = Annotated[Literal["active", "deactivated"], BeforeValidator(_state)]
#: A set, in the order of the alphabet.
SortedTexts = Annotated[tuple[str, ...], BeforeValidator(_sort_values)]
LifetimeSeconds = Annotated[int | None, BeforeValidator(_seconds)]

#: How fields of these types are shown.
_MEMBER_TYPES: dict[Any, Any] = {frozenset[str]: SortedTexts, timedelta: LifetimeSeconds, datetime: DateTime}
#: Members that are called otherwise inside.
_SOURCES = {"state": "active"}

RepresentationT = TypeVar("RepresentationT", bound="Representation")


class Representation(BaseModel):
    """Base of all representations.

    What has a ``version`` is known by it (ETag), anything else by what it shows. ``has_volatile_members`` says that it
    shows more than its version stands for, so that an equal version does not mean that nothing is new.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    has_volatile_members: ClassVar[bool] = False

    @classmethod
    def from_value(cls, value: object, **overrides: Any) -> Self:
        """The value as it is shown: each member is its attribute of that name, unless given."""
        members = {name: getattr(value, _SOURCES.get(name, name)) for name in cls.model_fields if name not in overrides}
        return cls.model_validate(members | overrides)


def representation_fields(
    entity: type, *, without: Collection[str] = ()
) -> Callable[[type[RepresentationT]], type[RepresentationT]]:
    """Add to a representation what everybody who sees such a thing is shown, unless it says it itself."""

    def derive(representation: type[RepresentationT]) -> type[RepresentationT]:
        members: dict[str, Any] = {}
        for field in entity_fields(entity).values():
            name = "state" if field.name == "active" else field.name
            if field.is_visible and name not in {*without, *representation.model_fields}:
                plain = ActiveState if name == "state" else _MEMBER_TYPES.get(field.type, field.type)
                members[name] = (plain | None if field.nullable else plain, ...)
        kind, docstring = representation.__name__, representation.__doc__
        model: type[RepresentationT] = create_model(kind, __base__=representation, __doc__=docstring, **members)
        model.__module__ = representation.__module__
        return model

    return derive
