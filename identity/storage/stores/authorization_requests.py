"""Authorization requests that wait for their user."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.sessions import PendingAuthorization


class AuthorizationRequestStore(ABC):
    """They go with the user who proved something for them; whatever else they name may be gone when they are
    continued.
    """

    @abstractmethod
    def add(self, pending: PendingAuthorization) -> None:
        """Store a new request. Raises DuplicateValue("id")."""

    @abstractmethod
    def find(self, request_id: str) -> PendingAuthorization | None:
        """The request with this id, finished and expired ones included."""

    @abstractmethod
    def update(self, pending: PendingAuthorization) -> None:
        """Replace the stored value by its next version.

        Raises StaleRow, also for a finished one; RowNotFound, also if its user is gone.
        """

    @abstractmethod
    def reset_for_user(self, user_id: str, *, except_id: str | None = None) -> int:
        """Have unfinished requests for which this user proved something begin anew, but one; returns how many did.

        Each becomes its next version, by one conditional write: who looked at the one before can neither update nor
        finish it.
        """

    @abstractmethod
    def finish(self, request_id: str, finished_at: datetime, *, version: int) -> PendingAuthorization:
        """End the request by one conditional write: of racing callers exactly one does; returns it as it was.

        Raises AlreadyUsed (with the row as value) if it was finished before, StaleRow if it is another version by now,
        RowNotFound if there is none. The transaction can go on.
        """
