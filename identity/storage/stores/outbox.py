"""The outbox: written in the transaction of a change, emptied after its commit."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.outbox import OutboxBacklog, OutboxMessage


class OutboxStore(ABC):
    """One row per message."""

    @abstractmethod
    def add(self, message: OutboxMessage) -> None:
        """Store a new message. Raises DuplicateValue("id")."""

    @abstractmethod
    def list_pending(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Up to ``limit`` messages of this kind that are not expired at this moment, oldest ``next_at`` first.

        One that cannot be read keeps no other from being found.
        """

    @abstractmethod
    def list_due(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Up to ``limit`` of those whose ``next_at`` has come: those that are not bulk first; of either the first of
        each organization, then the second of each, and so on. Messages of no organization are together as of one.

        One that cannot be read keeps no other from being found.
        """

    @abstractmethod
    def get_backlog(self, kind: str, now: datetime) -> OutboxBacklog:
        """What of this kind was tried in vain and is not expired (``failing``), what is expired (``given_up``), and
        when the oldest of both was made."""

    @abstractmethod
    def oldest_created_at(self, kind: str, now: datetime, limit: int) -> datetime | None:
        """When the oldest was made of the ``limit`` messages of this kind that are tried first; None if none waits.

        What is expired does not wait. A look takes no longer however many there are.
        """

    @abstractmethod
    def postpone(self, message_id: str, next_at: datetime) -> None:
        """Try it again then; one more attempt is counted. Raises RowNotFound."""

    @abstractmethod
    def delete(self, message_id: str) -> None:
        """Delete it. Raises RowNotFound."""
