"""The outbox, in memory."""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from operator import itemgetter

from identity.domain.outbox import Backlog, OutgoingMessage
from identity.storage.memory.entities import MemoryStore
from identity.storage.stores.outbox import OutboxStore


class MemoryOutboxStore(MemoryStore, OutboxStore):
    """Rows by id."""

    def add(self, message: OutgoingMessage) -> None:
        self._tables.outgoing_messages.insert({message.id: message})

    def waiting(self, kind: str, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        messages = self._waiting(kind, at)
        return tuple(sorted(messages, key=lambda message: (message.next_at, message.id))[:limit])

    def due(self, kind: str, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        due = (message for message in self._waiting(kind, at) if message.next_at <= at)
        turns: Counter[tuple[bool, str | None]] = Counter()
        ordered = []
        for message in sorted(due, key=lambda message: (message.next_at, message.id)):
            lane = message.bulk, message.organization_id
            ordered.append((message.bulk, turns[lane], message.next_at, message.id, message))
            turns[lane] += 1
        return tuple(message for *_, message in sorted(ordered, key=itemgetter(0, 1, 2, 3))[:limit])

    def backlog(self, kind: str, at: datetime) -> Backlog:
        failing = [message for message in self._waiting(kind, at) if message.attempts]
        given_up = [
            message for message in self._tables.outgoing_messages if message.kind == kind and message.expires_at <= at
        ]
        since = min((message.created_at for message in failing + given_up), default=None)
        return Backlog(failing=len(failing), given_up=len(given_up), since=since)

    def oldest(self, kind: str, at: datetime, limit: int) -> datetime | None:
        return min((message.created_at for message in self.waiting(kind, at, limit)), default=None)

    def postpone(self, message_id: str, next_at: datetime) -> None:
        message = self._tables.outgoing_messages.get(message_id)
        postponed = replace(message, next_at=next_at, attempts=message.attempts + 1)
        self._tables.outgoing_messages.put(message_id, postponed)

    def remove(self, message_id: str) -> None:
        self._tables.outgoing_messages.delete(message_id)

    def _waiting(self, kind: str, at: datetime) -> list[OutgoingMessage]:
        messages = self._tables.outgoing_messages
        return [message for message in messages if message.kind == kind and message.expires_at > at]
