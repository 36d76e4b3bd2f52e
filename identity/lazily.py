"""Attributes that are computed on first use and kept."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class lazily(Generic[Value]):  # noqa: N801 - a decorator, as property is
    """``functools.cached_property`` without the lock that, before Python 3.12, all instances of a class share: a value
    that waits for the storage would hold up every other request. It also takes a third of the time.
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
