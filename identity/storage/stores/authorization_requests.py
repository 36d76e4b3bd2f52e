"""Pending authorization requests."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.sessions import PendingAuthorization


class AuthorizationRequestStore(ABC):
    """They are deleted with the user who proved something in them; other entities that they name may be gone when they
    are continued."""

    @abstractmethod
    def add(self, pending: PendingAuthorization) -> None:
        """Raises DuplicateValue("id")."""

    @abstractmethod
    def find(self, request_id: str) -> PendingAuthorization | None:
        """The request with this id, including finished and expired ones."""

    @abstractmethod
    def update(self, pending: PendingAuthorization) -> None:
        """Replace the stored value by its next version. Raises StaleRow, also for a finished one; RowNotFound, also if
        its user is gone."""

    @abstractmethod
    def reset_for_user(self, user_id: str, *, except_id: str | None = None) -> int:
        """Restart all unfinished requests in which this user proved something, except one; returns their number. Each
        becomes its next version, by one conditional write: a caller that read the previous one can neither update nor
        finish it."""

    @abstractmethod
    def reset_for_organization(self, organization_id: str, *, except_user_ids: frozenset[str] = frozenset()) -> int:
        """``reset_for_user`` for all users of the organization, except these."""

    @abstractmethod
    def finish(self, request_id: str, finished_at: datetime, *, version: int) -> PendingAuthorization:
        """Finish the request by one conditional write: exactly one of several racing callers succeeds. Returns it as it
        was. Raises AlreadyUsed (with the row as value) if it was finished before, StaleRow if its version differs by
        now, RowNotFound if there is none. The transaction can continue."""
