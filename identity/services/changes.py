"""What every use case that changes a stored thing does alike."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Protocol, TypeVar

from identity.annotations import annotated
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.instance import Instance
from identity.domain.words import say
from identity.services.audit import Recorder, facts
from identity.storage.backend import Storage
from identity.storage.errors import Duplicate, Missing, Stale

Value = TypeVar("Value")

#: Opens a storage to read from; see Services.look.
Look = Callable[[], AbstractContextManager[Storage]]
#: Tells the instance; see Services.instance.
TellInstance = Callable[[], Instance | None]


_CHANGED = say("This was changed by somebody else meanwhile. Read it again, then repeat.")
_VALUE_TAKEN = say("This value is taken.")


@contextmanager
def told(kind: str, identifier: str, taken: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn a store's answer into a use case's.

    Missing becomes NotFound, Stale becomes Conflict, Duplicate becomes Invalid with the sentence that ``taken`` has for
    the field.
    """
    try:
        yield
    except Missing:
        raise NotFound(kind, identifier) from None
    except Stale:
        raise Conflict(_CHANGED) from None
    except Duplicate as taken_field:
        sentence = (taken or {}).get(taken_field.field, _VALUE_TAKEN)
        raise Invalid({taken_field.field: sentence}) from None


def refuse_stale(version: int, expected: int | None) -> None:
    """Raise Conflict unless the version is the one that is expected, or none is."""
    if expected is not None and version != expected:
        raise Conflict(_CHANGED)


class Parts(Protocol):
    """Whatever knows all services, and what the process keeps for them."""

    def part(self, name: str) -> Any:
        """The one of this name."""


class _Part:
    """What a service names, looked up when it is first asked for, and kept: few requests need all of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, service: "UseCases", owner: type | None = None) -> Any:
        part = service.__dict__[self._name] = service._services.part(self._name[1:])
        return part


class UseCases:
    """Base of the services. Each gets what its class names: ``_access: Access`` is the ``access`` of Services, or what
    the process keeps under this name."""

    _storage: Storage
    _audit: Recorder
    _now: datetime

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in annotated(cls):
            if name.startswith("_"):
                setattr(cls, name, _Part(name))

    def __init__(self, services: Parts) -> None:
        self._services = services

    def _found(self, value: Value | None, kind: str, identifier: str) -> Value:
        if value is None:
            raise NotFound(kind, identifier)
        return value

    def _record_created(self, event: str, kind: str, value: Any, organization_id: str | None) -> None:
        self._audit.record(event, kind=kind, id=value.id, organization_id=organization_id, detail=facts(value))

    def _record_removed(self, event: str, kind: str, value: Any, organization_id: str | None) -> None:
        self._audit.record(event, kind=kind, id=value.id, organization_id=organization_id, detail=facts(value))
