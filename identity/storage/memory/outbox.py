"""The outbox, in memory."""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from operator import itemgetter

from identity.domain.outbox import OutboxBacklog, OutboxMessage
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.stores.outbox import OutboxStore


class MemoryOutboxStore(MemoryStore, OutboxStore):
    def add(self, message: OutboxMessage) -> None:
        self._tables.outgoing_messages.insert({message.id: message})

    def list_pending(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        messages = self._waiting(kind, now)
        return tuple(sorted(messages, key=lambda message: (message.next_at, message.id))[:limit])

    def list_due(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        due = (message for message in self._waiting(kind, now) if message.next_at <= now)
        turns: Counter[tuple[bool, str | None]] = Counter()
        ordered = []
        for message in sorted(due, key=lambda message: (message.next_at, message.id)):
            lane = message.bulk, message.organization_id
            ordered.append((message.bulk, turns[lane], message.next_at, message.id, message))
            turns[lane] += 1
        return tuple(message for *_, message in sorted(ordered, key=itemgetter(0, 1, 2, 3))[:limit])

    def get_backlog(self, kind: str, now: datetime) -> OutboxBacklog:
        failing = [message for message in self._waiting(kind, now) if message.attempts]
        given_up = [row for row in self._tables.outgoing_messages if row.kind == kind and row.expires_at <= now]
        since = min((message.created_at for message in failing + given_up), default=None)
        return OutboxBacklog(failing=len(failing), abandoned=len(given_up), oldest_at=since)

    def oldest_created_at(self, kind: str, now: datetime, limit: int) -> datetime | None:
        return min((message.created_at for message in self.list_pending(kind, now, limit)), default=None)

    def find(self, message_id: str) -> OutboxMessage | None:
        return self._tables.outgoing_messages.find(message_id)

    def list_newest(self, kind: str, limit: int) -> tuple[OutboxMessage, ...]:
        messages = (message for message in self._tables.outgoing_messages if message.kind == kind)
        return tuple(sorted(messages, key=lambda message: (message.created_at, message.id), reverse=True)[:limit])

    def postpone(self, message_id: str, next_at: datetime, answer: str | None = None) -> None:
        message = self._tables.outgoing_messages.get(message_id)
        postponed = replace(message, next_at=next_at, attempts=message.attempts + 1, last_answer=answer)
        self._tables.outgoing_messages.replace_unchecked(message_id, postponed)

    def reschedule(self, message_id: str, next_at: datetime, expires_at: datetime) -> None:
        message = self._tables.outgoing_messages.get(message_id)
        rescheduled = replace(message, next_at=next_at, expires_at=expires_at)
        self._tables.outgoing_messages.replace_unchecked(message_id, rescheduled)

    def delete(self, message_id: str) -> None:
        self._tables.outgoing_messages.delete(message_id)

    def _waiting(self, kind: str, at: datetime) -> list[OutboxMessage]:
        messages = self._tables.outgoing_messages
        return [message for message in messages if message.kind == kind and message.expires_at > at]
