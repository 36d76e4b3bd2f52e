"""Commands that make and change entities: their members are the fields that the entity lets be set."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, create_model

from identity.domain.entity import Member, Rule, members
from identity.services.commands import Command

Derived = TypeVar("Derived", bound=Command)


def making(entity: type) -> Callable[[type[Derived]], type[Derived]]:
    """Add to a command what whoever makes such a thing sets, unless the command says it itself."""

    def derive(command: type[Derived]) -> type[Derived]:
        given = {one.name: (_type(one), ... if one.required else one.default) for one in _settable(entity)}
        return _with(command, given)

    return derive


def changing(entity: type) -> Callable[[type[Derived]], type[Derived]]:
    """Add to a command what whoever changes such a thing sets, unless the command says it itself. What is not given
    stays; None is as good as not given, unless it is one of the field's values."""

    def derive(command: type[Derived]) -> type[Derived]:
        given = {one.name: (_type(one) | None, None) for one in _settable(entity) if one.changeable}
        return _with(command, given)

    return derive


def checked(rule: Rule) -> AfterValidator:
    """The rule as the library wants it."""

    def check(value: Any) -> Any:
        sentence = rule(value)
        if sentence is not None:
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


def _settable(entity: type) -> list[Member]:
    return [one for one in members(entity).values() if one.settable]


def _type(member: Member) -> Any:
    declared = member.declared
    plain = member.type
    if declared.each is not None:
        plain = plain.__origin__[(Annotated[str, checked(declared.each)], *plain.__args__[1:])]
    ruled = plain if declared.rule is None else Annotated[plain, checked(declared.rule)]
    return ruled | None if member.nullable else ruled


def _with(command: type[Derived], given: dict[str, Any]) -> type[Derived]:
    own = {name: one for name, one in given.items() if name not in command.model_fields}
    model: type[Derived] = create_model(command.__name__, __base__=command, __doc__=command.__doc__, **own)
    model.__module__ = command.__module__
    return model
