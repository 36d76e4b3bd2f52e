"""What all services that change stored entities share."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from identity.crypto.sealing import Sealer
from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.expirations import until_problem
from identity.domain.instance import Instance
from identity.domain.messages import gettext_lazy
from identity.domain.users import Subject
from identity.services.audit import AuditRecorder, dump_fields
from identity.settings import Settings
from identity.storage.backend import Storage
from identity.storage.errors import DuplicateValue, RowNotFound, StaleRow

Value = TypeVar("Value")

#: Opens a storage for reading; see Services.read_session.
ReadSessionFactory = Callable[[], AbstractContextManager[Storage]]


CHANGED_MEANWHILE = gettext_lazy("This was changed in the meantime. Read it again, then repeat your request.")
_VALUE_TAKEN = gettext_lazy("This value is already in use.")


@contextmanager
def translate_storage_errors(
    kind: str, identifier: str, duplicate_messages: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Turn a store's result into a domain error. Missing becomes NotFound, Stale becomes Conflict, Duplicate becomes
    Invalid with the field's message from ``duplicate_messages``."""
    try:
        yield
    except RowNotFound:
        raise NotFound(kind, identifier) from None
    except StaleRow:
        raise Conflict(CHANGED_MEANWHILE) from None
    except DuplicateValue as taken_field:
        sentence = (duplicate_messages or {}).get(taken_field.field, _VALUE_TAKEN)
        raise Invalid({taken_field.field: sentence}) from None


def refuse_stale(version: int, expected: int | None) -> None:
    """Raise Conflict unless the version matches the expected one, if any."""
    if expected is not None and version != expected:
        raise Conflict(CHANGED_MEANWHILE)


def refuse_until(until: datetime | None, now: datetime) -> None:
    """Raise Invalid unless roles can be granted until this moment."""
    problem = until_problem(until, now)
    if problem is not None:
        raise Invalid({"until": problem})


@dataclass(frozen=True, slots=True)
class TransactionState:
    """Shared by the services of one transaction; for ``look`` see Services.read_session, for ``instance``
    Services.find_instance."""

    storage: Storage
    audit: AuditRecorder
    now: datetime
    look: ReadSessionFactory
    instance: Callable[[], Instance | None]
    settings: Settings
    sealer: Sealer


@dataclass(eq=False, repr=False)
class Service:
    """Base of the services. Further fields are the collaborators, with which ``container`` constructs each service."""

    _state: TransactionState

    def __post_init__(self) -> None:
        state = self._state
        self._storage, self._audit, self._now = state.storage, state.audit, state.now
        self._look, self._instance = state.look, state.instance
        self._settings, self._sealer = state.settings, state.sealer

    def _require_found(self, value: Value | None, kind: str, identifier: str) -> Value:
        if value is None:
            raise NotFound(kind, identifier)
        return value

    def _record_snapshot(self, event: str, kind: str, value: Any, organization_id: str | None) -> None:
        self._audit.record(event, kind=kind, id=value.id, organization_id=organization_id, detail=dump_fields(value))

    def _get_subject(self, user_id: str) -> Subject:
        """The user with their organization. Raises NotFound."""
        return self._require_found(self._storage.users.find_subject(user_id), "user", user_id)

    def _record_about(self, event: str, subject: Subject, detail: Mapping[str, object] | None = None) -> None:
        """Record an event of the user's account."""
        self._audit.record(
            event, kind="user", id=subject.user.id, organization_id=subject.organization.id, detail=detail
        )
