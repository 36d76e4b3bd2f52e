"""The outbox: written in the transaction of a change, emptied after its commit."""

from abc import abstractmethod
from datetime import datetime

from identity.domain.outbox import Backlog, OutgoingMessage
from identity.storage.stores.entity import PurgedStore


class OutboxStore(PurgedStore):
    """One row per message. A message is over when it expires."""

    @abstractmethod
    def add(self, message: OutgoingMessage) -> None:
        """Store a new message. Raises Duplicate("id")."""

    @abstractmethod
    def due(self, kind: str, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        """Up to ``limit`` messages of this kind whose ``next_at`` has come and which are not expired, oldest
        ``next_at`` first."""

    @abstractmethod
    def next_at(self, kind: str, at: datetime) -> datetime | None:
        """When the next message of this kind is due, past moments included; None if all are expired at this moment, or
        there is none."""

    @abstractmethod
    def backlog(self, kind: str, at: datetime) -> Backlog:
        """What of this kind was tried in vain and is not expired (``failing``), what is expired (``given_up``), and
        when the oldest of both was made."""

    @abstractmethod
    def postpone(self, message_id: str, next_at: datetime) -> None:
        """Try it again then; one more attempt is counted. Raises Missing."""

    @abstractmethod
    def remove(self, message_id: str) -> None:
        """Delete it. Raises Missing."""
