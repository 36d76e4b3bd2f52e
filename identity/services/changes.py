"""What every use case that changes a stored thing does alike."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

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


@dataclass(slots=True)
class TransactionState:
    """What the services of one transaction share; for ``look`` see Services."""

    storage: Storage
    audit: Recorder
    now: datetime
    look: Look


class UseCases:
    """Base of the services. Each is made with the others that it works with, which ``bundle`` puts together."""

    def __init__(self, state: TransactionState) -> None:
        self._storage, self._audit = state.storage, state.audit
        self._now, self._look = state.now, state.look

    def _found(self, value: Value | None, kind: str, identifier: str) -> Value:
        if value is None:
            raise NotFound(kind, identifier)
        return value

    def _record_created(self, event: str, kind: str, value: Any, organization_id: str | None) -> None:
        self._audit.record(event, kind=kind, id=value.id, organization_id=organization_id, detail=facts(value))

    def _record_removed(self, event: str, kind: str, value: Any, organization_id: str | None) -> None:
        self._audit.record(event, kind=kind, id=value.id, organization_id=organization_id, detail=facts(value))
