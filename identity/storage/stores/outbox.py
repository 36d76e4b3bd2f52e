"""The outbox: written in the transaction of a change, sent after its commit."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.outbox import OutboxBacklog, OutboxMessage


class OutboxStore(ABC):
    """One row per message."""

    @abstractmethod
    def add(self, message: OutboxMessage) -> None:
        """Raises DuplicateValue("id")."""

    @abstractmethod
    def list_pending(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Up to ``limit`` messages of this kind that have not expired, lowest ``next_at`` first. Unreadable messages
        are skipped."""

    @abstractmethod
    def list_due(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Up to ``limit`` messages whose ``next_at`` has come: bulk ones last, and among the rest the first of each
        organization, then the second of each, and so on. Messages without an organization count as one organization's.
        Unreadable messages are skipped."""

    @abstractmethod
    def get_backlog(self, kind: str, now: datetime) -> OutboxBacklog:
        """Messages of this kind that failed and have not expired (``failing``), expired ones (``given_up``), and the
        creation time of the oldest of both."""

    @abstractmethod
    def oldest_created_at(self, kind: str, now: datetime, limit: int) -> datetime | None:
        """Creation time of the oldest among the ``limit`` messages of this kind that are tried first; None for an empty
        queue. Expired messages do not count. The cost does not grow with the queue."""

    @abstractmethod
    def find(self, message_id: str) -> OutboxMessage | None:
        """The message, expired or not."""

    @abstractmethod
    def list_newest(self, kind: str, limit: int) -> tuple[OutboxMessage, ...]:
        """Up to ``limit`` messages of this kind, expired ones too, newest first. Unreadable messages are skipped."""

    @abstractmethod
    def postpone(self, message_id: str, next_at: datetime, answer: str | None = None) -> None:
        """Retry at that time, count one more attempt, and store why this one failed. Raises RowNotFound."""

    @abstractmethod
    def reschedule(self, message_id: str, next_at: datetime, expires_at: datetime) -> None:
        """Try at that time, with a new end. Raises RowNotFound."""

    @abstractmethod
    def delete(self, message_id: str) -> None:
        """Raises RowNotFound."""
