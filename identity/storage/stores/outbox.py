"""The outbox: written in the transaction of a change, emptied after its commit."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.outbox import OutgoingMessage


class OutboxStore(ABC):
    """One row per message."""

    @abstractmethod
    def add(self, message: OutgoingMessage) -> None:
        """Store a new message. Raises Duplicate("id")."""

    @abstractmethod
    def due(self, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        """Up to ``limit`` messages whose ``next_at`` has come, oldest ``next_at`` first; expired ones are among
        them."""

    @abstractmethod
    def next_at(self) -> datetime | None:
        """When the next message is due, past moments included; None if there is none at all."""

    @abstractmethod
    def postpone(self, message_id: str, next_at: datetime) -> None:
        """Try it again then; one more attempt is counted. Raises Missing."""

    @abstractmethod
    def remove(self, message_id: str) -> None:
        """Delete it. Raises Missing."""
