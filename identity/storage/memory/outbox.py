"""The outbox, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.outbox import OutgoingMessage
from identity.storage.memory.tables import Tables
from identity.storage.stores.outbox import OutboxStore


class MemoryOutboxStore(OutboxStore):
    """Rows by id."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, message: OutgoingMessage) -> None:
        self._tables.outgoing_messages.insert(message.id, message)

    def due(self, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        messages = [message for message in self._tables.outgoing_messages if message.next_at <= at]
        return tuple(sorted(messages, key=lambda message: (message.next_at, message.id))[:limit])

    def next_at(self) -> datetime | None:
        return min((message.next_at for message in self._tables.outgoing_messages), default=None)

    def postpone(self, message_id: str, next_at: datetime) -> None:
        message = self._tables.outgoing_messages.get(message_id)
        postponed = replace(message, next_at=next_at, attempts=message.attempts + 1)
        self._tables.outgoing_messages.put(message_id, postponed)

    def remove(self, message_id: str) -> None:
        self._tables.outgoing_messages.delete(message_id)
