"""Commands that make and change entities: their members are the fields that the entity lets be set."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, create_model

from identity.domain.entity import EntityField, Validator, entity_fields
from identity.services.commands import Command

Derived = TypeVar("Derived", bound=Command)


def with_create_fields(entity: type) -> Callable[[type[Derived]], type[Derived]]:
    """Add to a command what whoever makes such a thing sets, unless the command says it itself."""

    def derive(command: type[Derived]) -> type[Derived]:
        given = {field.name: (_type(field), ... if field.required else field.default) for field in _settable(entity)}
        return _with(command, given)

    return derive


def with_update_fields(entity: type) -> Callable[[type[Derived]], type[Derived]]:
    """Add to a command what whoever changes such a thing sets, unless the command says it itself. What is not given
    stays; None is as good as not given, unless it is one of the field's values."""

    def derive(command: type[Derived]) -> type[Derived]:
        given = {field.name: (_type(field) | None, None) for field in _settable(entity) if field.is_mutable}
        return _with(command, given)

    return derive


def field_validator(rule: Validator) -> AfterValidator:
    """The rule as the library wants it."""

    def check(value: Any) -> Any:
        sentence = rule(value)
        if sentence is not None:
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


def _settable(entity: type) -> list[EntityField]:
    return [field for field in entity_fields(entity).values() if field.is_settable]


def _type(member: EntityField) -> Any:
    declared = member.options
    plain = member.type
    if declared.item_validator is not None:
        plain = plain.__origin__[(Annotated[str, field_validator(declared.item_validator)], *plain.__args__[1:])]
    ruled = plain if declared.validator is None else Annotated[plain, field_validator(declared.validator)]
    return ruled | None if member.nullable else ruled


def _with(command: type[Derived], given: dict[str, Any]) -> type[Derived]:
    own = {name: item for name, item in given.items() if name not in command.model_fields}
    model: type[Derived] = create_model(command.__name__, __base__=command, __doc__=command.__doc__, **own)
    model.__module__ = command.__module__
    return model
