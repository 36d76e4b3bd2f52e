"""Authorization requests that wait for their user."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.sessions import PendingAuthorization


class AuthorizationRequestStore(ABC):
    """Nothing refers to them, and they refer to nothing: what they name may be gone when they are continued."""

    @abstractmethod
    def add(self, pending: PendingAuthorization) -> None:
        """Store a new request. Raises Duplicate("id")."""

    @abstractmethod
    def find(self, request_id: str) -> PendingAuthorization | None:
        """The request with this id, finished and expired ones included."""

    @abstractmethod
    def update(self, pending: PendingAuthorization) -> None:
        """Replace the stored value by its next version. Raises Stale, also for a finished one, and Missing."""

    @abstractmethod
    def finish(self, request_id: str, at: datetime) -> PendingAuthorization:
        """End the request by one conditional write: of racing callers exactly one does; returns it as it was.

        Raises AlreadyUsed (with the row as value) if it was finished before, Missing if there is none. The transaction
        can go on.
        """

    @abstractmethod
    def purge(self, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` requests that expired before; returns how many went."""
