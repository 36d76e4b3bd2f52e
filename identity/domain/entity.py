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

EntityT = TypeVar("EntityT")

#: What is wrong with a value, as a sentence, or None.
Validator = Callable[[Any], str | None]


class Mutability(Enum):
    """Who sets a field, and when."""

    #: The service, and it is shown.
    READ_ONLY = auto()
    #: The service, in each version of the thing; it is shown, and no detail of an event.
    VERSIONED = auto()
    #: The service, and it is nobody's business.
    INTERNAL = auto()
    #: Whoever makes the thing; then it stays.
    CREATE_ONLY = auto()
    #: Whoever makes or changes the thing.
    MUTABLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOptions:
    """What is said of a field besides its type and default: the rule for its value, or for ``item_validator`` text in
    it.

    ``label`` and ``hint`` are its words for people, ``missing`` is said where it was left empty and must not be, and
    ``words`` tell what single values mean. ``section`` is where they find it, ``permission`` what it takes to set it at
    the instance. ``types`` holds the types of things that have a use for it; empty: all.
    """

    mutability: Mutability
    validator: Validator | None = None
    item_validator: Validator | None = None
    label: str = ""
    hint: str = ""
    missing: str = ""
    value_labels: Mapping[Any, str] = field(default_factory=dict)
    section: str = ""
    permission: str = ""
    types: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityField:
    """A field of an entity: name, type without None, whether None is a value, default, and what is declared of it."""

    name: str
    type: Any
    nullable: bool
    required: bool
    default: Any
    options: FieldOptions

    @property
    def is_settable(self) -> bool:
        """True if whoever makes the thing sets it."""
        return self.options.mutability in (Mutability.CREATE_ONLY, Mutability.MUTABLE)

    @property
    def is_mutable(self) -> bool:
        """True if whoever changes the thing sets it."""
        return self.options.mutability is Mutability.MUTABLE

    def applies_to(self, kind: Any) -> bool:
        """True if things of this type have a use for it; None asks for things of any type."""
        return kind is None or not self.options.types or kind in self.options.types

    @property
    def is_visible(self) -> bool:
        """True unless it is nobody's business."""
        return self.options.mutability is not Mutability.INTERNAL

    @property
    def is_audited(self) -> bool:
        """True if events tell it."""
        return self.options.mutability not in (Mutability.INTERNAL, Mutability.VERSIONED)


def read_only(**options: Any) -> Any:
    """A field that the service sets once; ``default`` or ``default_factory`` as of dataclasses."""
    return _field(Mutability.READ_ONLY, **options)


def versioned(**options: Any) -> Any:
    """A field that the service sets in each version."""
    return _field(Mutability.VERSIONED, **options)


def internal(**options: Any) -> Any:
    """A field that is shown and told to nobody."""
    return _field(Mutability.INTERNAL, **options)


def create_only(**options: Any) -> Any:
    """A field that whoever makes the thing sets, for ever; with what Declared says of it."""
    return _field(Mutability.CREATE_ONLY, **options)


def mutable(**options: Any) -> Any:
    """A field that can be set at any time; with what Declared says of it."""
    return _field(Mutability.MUTABLE, **options)


def _field(mutability: Mutability, *, default: Any = MISSING, default_factory: Any = MISSING, **options: Any) -> Any:
    metadata = {_DECLARED: FieldOptions(mutability=mutability, **options)}
    if default_factory is not MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


_DECLARED = "declared"


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(read_only, versioned, internal, create_only, mutable)
)
def entity(cls: type[EntityT]) -> type[EntityT]:
    """Make a class a frozen dataclass with keywords and slots.

    Raises TypeError for a field of which nothing is declared: whether it is shown and told is never left to chance.
    """
    made_of = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    for item in fields(made_of):  # type: ignore[arg-type]
        if _DECLARED not in item.metadata:
            raise TypeError(f"nothing is declared of {cls.__name__}.{item.name}")
    return made_of


def entity_fields(cls: type[Any]) -> Mapping[str, EntityField]:
    """The fields of an entity by name, in order; of any other dataclass as if the service had made them all."""
    hashable: Any = cls
    return _members(hashable)


@cache
def _members(cls: Any) -> Mapping[str, EntityField]:
    types = get_type_hints(cls)
    found = {}
    for item in fields(cls):
        options = tuple(option for option in get_args(types[item.name]) if option is not NoneType)
        nullable = NoneType in get_args(types[item.name])
        found[item.name] = EntityField(
            name=item.name,
            type=options[0] if nullable else types[item.name],
            nullable=nullable,
            required=item.default is MISSING and item.default_factory is MISSING,
            default=item.default_factory() if item.default_factory is not MISSING else item.default,
            options=item.metadata.get(_DECLARED, _DEFAULT_OPTIONS),
        )
    return MappingProxyType(found)


_DEFAULT_OPTIONS = FieldOptions(mutability=Mutability.READ_ONLY)
