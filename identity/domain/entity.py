"""Entity: a frozen dataclass whose fields say who sets them and when, by which rule, and how people are told of them.

Columns, commands, representations, documents, audit details and forms are made from what stands here, so that a field
is declared once.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum, auto
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

Entity = TypeVar("Entity")

#: What is wrong with a value, as a sentence, or None.
Rule = Callable[[Any], str | None]


class When(Enum):
    """Who sets a field, and when."""

    #: The service, and it is shown.
    MADE = auto()
    #: The service, in each version of the thing; it is shown, and no detail of an event.
    STAMP = auto()
    #: The service, and it is nobody's business.
    INNER = auto()
    #: Whoever makes the thing; then it stays.
    ONCE = auto()
    #: Whoever makes or changes the thing.
    ANY_TIME = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is said of a field besides its type and default: the rule for its value, or for ``each`` text in it.

    ``label`` and ``hint`` are its words for people, ``missing`` is said where it was left empty and must not be, and
    ``words`` tell what single values mean. ``section`` is where they find it, ``permission`` what it takes to set it at
    the instance. ``only_for`` holds the types of things that have a use for it; empty: all.
    """

    when: When
    rule: Rule | None = None
    each: Rule | None = None
    label: str = ""
    hint: str = ""
    missing: str = ""
    words: Mapping[Any, str] = field(default_factory=dict)
    section: str = ""
    permission: str = ""
    only_for: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A field of an entity: name, type without None, whether None is a value, default, and what is declared of it."""

    name: str
    type: Any
    nullable: bool
    required: bool
    default: Any
    declared: Declared

    @property
    def settable(self) -> bool:
        """True if whoever makes the thing sets it."""
        return self.declared.when in (When.ONCE, When.ANY_TIME)

    @property
    def changeable(self) -> bool:
        """True if whoever changes the thing sets it."""
        return self.declared.when is When.ANY_TIME

    def is_for(self, kind: Any) -> bool:
        """True if things of this type have a use for it; None asks for things of any type."""
        return kind is None or not self.declared.only_for or kind in self.declared.only_for

    @property
    def shown(self) -> bool:
        """True unless it is nobody's business."""
        return self.declared.when is not When.INNER

    @property
    def told(self) -> bool:
        """True if events tell it."""
        return self.declared.when not in (When.INNER, When.STAMP)


def made(**given: Any) -> Any:
    """A field that the service sets once; ``default`` or ``default_factory`` as of dataclasses."""
    return _field(When.MADE, **given)


def stamp(**given: Any) -> Any:
    """A field that the service sets in each version."""
    return _field(When.STAMP, **given)


def inner(**given: Any) -> Any:
    """A field that is shown and told to nobody."""
    return _field(When.INNER, **given)


def once(**given: Any) -> Any:
    """A field that whoever makes the thing sets, for ever; with what Declared says of it."""
    return _field(When.ONCE, **given)


def setting(**given: Any) -> Any:
    """A field that can be set at any time; with what Declared says of it."""
    return _field(When.ANY_TIME, **given)


def _field(when: When, *, default: Any = MISSING, default_factory: Any = MISSING, **said: Any) -> Any:
    metadata = {_DECLARED: Declared(when=when, **said)}
    if default_factory is not MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


_DECLARED = "declared"


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(made, stamp, inner, once, setting))
def entity(cls: type[Entity]) -> type[Entity]:
    """Make a class a frozen dataclass with keywords and slots.

    Raises TypeError for a field of which nothing is declared: whether it is shown and told is never left to chance.
    """
    made_of = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    for one in fields(made_of):  # type: ignore[arg-type]
        if _DECLARED not in one.metadata:
            raise TypeError(f"nothing is declared of {cls.__name__}.{one.name}")
    return made_of


def members(cls: type[Any]) -> Mapping[str, Member]:
    """The fields of an entity by name, in order; of any other dataclass as if the service had made them all."""
    hashable: Any = cls
    return _members(hashable)


@cache
def _members(cls: Any) -> Mapping[str, Member]:
    types = get_type_hints(cls)
    found = {}
    for one in fields(cls):
        options = tuple(option for option in get_args(types[one.name]) if option is not NoneType)
        nullable = NoneType in get_args(types[one.name])
        found[one.name] = Member(
            name=one.name,
            type=options[0] if nullable else types[one.name],
            nullable=nullable,
            required=one.default is MISSING and one.default_factory is MISSING,
            default=one.default_factory() if one.default_factory is not MISSING else one.default,
            declared=one.metadata.get(_DECLARED, _MADE),
        )
    return MappingProxyType(found)


_MADE = Declared(when=When.MADE)
