"""Representation: how a thing looks to clients of the API; the model doubles as the schema in the document."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, create_model

from identity.domain.entity import members
from identity.domain.expirations import NEVER, NEVER_WORD

#: A moment in UTC and whole seconds (RFC 3339).
Moment = AwareDatetime


def _or_never(moment: datetime) -> datetime | str:
    return NEVER_WORD if moment == NEVER else moment


def _state(active: bool) -> str:
    return "active" if active else "deactivated"


def _in_order(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


#: When something ends.
Expiration = Annotated[Moment | Literal["never"], BeforeValidator(_or_never)]
State = Annotated[Literal["active", "deactivated"], BeforeValidator(_state)]
#: A set, in the order of the alphabet.
Words = Annotated[tuple[str, ...], BeforeValidator(_in_order)]
Lifetime = Annotated[int | None, BeforeValidator(_seconds)]

#: How fields of these types are shown.
_SHOWN: dict[Any, Any] = {frozenset[str]: Words, timedelta: Lifetime, datetime: Moment}
#: Members that are called otherwise inside.
_SOURCES = {"state": "active"}

Shown = TypeVar("Shown", bound="Representation")


class Representation(BaseModel):
    """Base of all representations.

    What has a ``version`` is known by it (ETag), anything else by what it shows. ``moves`` says that it shows more than
    its version stands for, so that an equal version does not mean that nothing is new.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    moves: ClassVar[bool] = False

    @classmethod
    def of(cls, value: object, **further: Any) -> Self:
        """The value as it is shown: each member is its attribute of that name, unless given."""
        members = {name: getattr(value, _SOURCES.get(name, name)) for name in cls.model_fields if name not in further}
        return cls.model_validate(members | further)


def showing(entity: type, *, without: Collection[str] = ()) -> Callable[[type[Shown]], type[Shown]]:
    """Add to a representation what everybody who sees such a thing is shown, unless it says it itself."""

    def derive(representation: type[Shown]) -> type[Shown]:
        given: dict[str, Any] = {}
        for one in members(entity).values():
            name = "state" if one.name == "active" else one.name
            if one.shown and name not in {*without, *representation.model_fields}:
                plain = State if name == "state" else _SHOWN.get(one.type, one.type)
                given[name] = (plain | None if one.nullable else plain, ...)
        kind, said = representation.__name__, representation.__doc__
        model: type[Shown] = create_model(kind, __base__=representation, __doc__=said, **given)
        model.__module__ = representation.__module__
        return model

    return derive
