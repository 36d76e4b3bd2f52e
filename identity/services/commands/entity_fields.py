"""Commands that create and change entities; their members are derived from the entity's fields."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, create_model

from identity.domain.entity import EntityField, Validator, entity_fields
from identity.services.commands import Command

Derived = TypeVar("Derived", bound=Command)


def with_create_fields(entity: type) -> Callable[[type[Derived]], type[Derived]]:
    """Add the entity's settable fields to a command that creates it; members of the command take precedence."""

    def derive(command: type[Derived]) -> type[Derived]:
        field_types = {
            field.name: (_type(field), ... if field.required else field.default) for field in _settable_fields(entity)
        }
        return _with(command, field_types)

    return derive


def with_update_fields(entity: type) -> Callable[[type[Derived]], type[Derived]]:
    """Add the entity's mutable fields to a command that changes it; members of the command take precedence. A field
    that is left out stays; so does one that is None, unless the field is nullable."""

    def derive(command: type[Derived]) -> type[Derived]:
        field_types = {
            field.name: (_type(field) | None, None) for field in _settable_fields(entity) if field.is_mutable
        }
        return _with(command, field_types)

    return derive


def field_validator(rule: Validator) -> AfterValidator:
    """The rule as a pydantic validator."""

    def check(value: Any) -> Any:
        sentence = rule(value)
        if sentence is not None:
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


def _settable_fields(entity: type) -> list[EntityField]:
    return [field for field in entity_fields(entity).values() if field.is_settable]


def _type(member: EntityField) -> Any:
    declared = member.options
    plain = member.type
    if declared.item_validator is not None:
        plain = plain.__origin__[(Annotated[str, field_validator(declared.item_validator)], *plain.__args__[1:])]
    ruled = plain if declared.validator is None else Annotated[plain, field_validator(declared.validator)]
    return ruled | None if member.nullable else ruled


def _with(command: type[Derived], field_types: dict[str, Any]) -> type[Derived]:
    new_fields = {name: item for name, item in field_types.items() if name not in command.model_fields}
    model: type[Derived] = create_model(command.__name__, __base__=command, __doc__=command.__doc__, **new_fields)
    model.__module__ = command.__module__
    return model
