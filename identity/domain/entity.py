"""Entities: frozen dataclasses whose fields declare who sets them and when, and their validators.

Columns, commands, representations, documents, audit details and forms are derived from them, so each field is
declared once.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum, auto
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

EntityT = TypeVar("EntityT")

#: Returns what is wrong with a value, as a sentence, or None.
Validator = Callable[[Any], str | None]


class Mutability(Enum):
    """Who sets a field, and when."""

    #: Set by the service once; visible.
    READ_ONLY = auto()
    #: Set by the service in each version; visible, but not part of audit details.
    VERSIONED = auto()
    #: Set by the service; never visible.
    INTERNAL = auto()
    #: Set on creation only.
    CREATE_ONLY = auto()
    #: Set on creation and changed later.
    MUTABLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOptions:
    """Options of a field beside its type and default: the validator of its value, or of each item by
    ``item_validator``. ``permission`` is what setting it takes at the instance. ``types`` are the types of objects that
    use the field; empty for all."""

    mutability: Mutability
    validator: Validator | None = None
    item_validator: Validator | None = None
    permission: str = ""
    types: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityField:
    """A field of an entity: name, type without None, whether None is allowed, default and options."""

    name: str
    type: Any
    nullable: bool
    required: bool
    default: Any
    options: FieldOptions

    @property
    def is_settable(self) -> bool:
        """True if it can be set on creation."""
        return self.options.mutability in (Mutability.CREATE_ONLY, Mutability.MUTABLE)

    @property
    def is_mutable(self) -> bool:
        """True if it can be changed."""
        return self.options.mutability is Mutability.MUTABLE

    def applies_to(self, kind: Any) -> bool:
        """True if objects of this type use the field; None stands for any type."""
        return kind is None or not self.options.types or kind in self.options.types

    @property
    def is_visible(self) -> bool:
        return self.options.mutability is not Mutability.INTERNAL

    @property
    def is_audited(self) -> bool:
        """True if audit events include it."""
        return self.options.mutability not in (Mutability.INTERNAL, Mutability.VERSIONED)


def read_only(**options: Any) -> Any:
    """A field that the service sets once; ``default`` and ``default_factory`` as in dataclasses."""
    return _field(Mutability.READ_ONLY, **options)


def versioned(**options: Any) -> Any:
    """A field that the service sets in each version."""
    return _field(Mutability.VERSIONED, **options)


def internal(**options: Any) -> Any:
    """A field that is never visible."""
    return _field(Mutability.INTERNAL, **options)


def create_only(**options: Any) -> Any:
    """A field that is set on creation only, with FieldOptions."""
    return _field(Mutability.CREATE_ONLY, **options)


def mutable(**options: Any) -> Any:
    """A field that can be changed at any time, with FieldOptions."""
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
    """Make a class a frozen, keyword-only dataclass with slots. Raises TypeError for a field without a declared
    mutability: visibility is never left to chance."""
    entity_class = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    for item in fields(entity_class):  # type: ignore[arg-type]
        if _DECLARED not in item.metadata:
            raise TypeError(f"nothing is declared of {cls.__name__}.{item.name}")
    return entity_class


def entity_fields(cls: type[Any]) -> Mapping[str, EntityField]:
    """The fields of an entity by name, in order. Fields of other dataclasses count as read-only."""
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
