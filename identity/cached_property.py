"""``cached_property`` that is safe with greenlets on every supported Python.

Before Python 3.12, ``functools.cached_property`` holds one lock for all instances of a class while it computes: a value
that waits for the storage would block every other request.
"""

import sys

if sys.version_info >= (3, 12):
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any, Generic, TypeVar

    Value = TypeVar("Value")

    class cached_property(Generic[Value]):  # noqa: N801 - the name it has in functools
        """``functools.cached_property`` with the behaviour of Python 3.12."""

        def __init__(self, compute: Callable[[Any], Value]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Value:
            if instance is None:
                return self  # type: ignore[return-value]
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


__all__ = ["cached_property"]
