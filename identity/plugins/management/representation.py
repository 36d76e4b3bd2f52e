"""Representation: how the API returns an entity. The model is also the published schema."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, create_model

from identity.domain.entity import entity_fields
from identity.domain.expirations import NEVER, NEVER_TEXT

#: UTC, in whole seconds (RFC 3339).
DateTime = AwareDatetime


def _format_expiration(moment: datetime) -> datetime | str:
    return NEVER_TEXT if moment == NEVER else moment


def _state(active: bool) -> str:
    return "active" if active else "deactivated"


def _sort_values(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


#: A moment or "never".
Expiration = Annotated[DateTime | Literal["never"], BeforeValidator(_format_expiration)]
ActiveState = Annotated[Literal["active", "deactivated"], BeforeValidator(_state)]
#: A set in alphabetical order.
SortedTexts = Annotated[tuple[str, ...], BeforeValidator(_sort_values)]
LifetimeSeconds = Annotated[int | None, BeforeValidator(_seconds)]

#: API types of field types.
_MEMBER_TYPES: dict[Any, Any] = {frozenset[str]: SortedTexts, timedelta: LifetimeSeconds, datetime: DateTime}
#: Members whose attribute has another name.
_SOURCES = {"state": "active"}

RepresentationT = TypeVar("RepresentationT", bound="Representation")


class Representation(BaseModel):
    """Base of all representations. The entity tag is the ``version``, or without one a digest of the content.
    ``has_volatile_members`` marks representations that can change while the version stays.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    has_volatile_members: ClassVar[bool] = False

    @classmethod
    def from_value(cls, value: object, **overrides: Any) -> Self:
        """Each member is the attribute of that name, unless overridden."""
        members = {name: getattr(value, _SOURCES.get(name, name)) for name in cls.model_fields if name not in overrides}
        return cls.model_validate(members | overrides)


def representation_fields(
    entity: type, *, without: Collection[str] = ()
) -> Callable[[type[RepresentationT]], type[RepresentationT]]:
    """Add the entity's visible fields to a representation, unless it declares them itself."""

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
