"""Attributes that are made when they are first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class lazily(Generic[Value]):  # noqa: N801 - a decorator, as property is
    """Makes of a function an attribute that is made when it is first asked for, and kept.

    As ``functools.cached_property``, which until Python 3.12 holds one lock for all instances meanwhile: whoever makes
    one and has to wait for the storage would let everybody else's wait too.
    """

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        made = instance.__dict__[self._name] = self._make(instance)
        return made
