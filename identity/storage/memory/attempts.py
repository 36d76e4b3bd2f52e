"""Attempts at passwords, in memory."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from identity.domain.attempts import LIMITS, NEVER, Attempt, Limits, next_after
from identity.storage.memory.entities import MemoryStore
from identity.storage.memory.tables import Count
from identity.storage.stores.attempts import AttemptStore


class MemoryAttemptStore(MemoryStore, AttemptStore):
    """Counts by key."""

    def reserve(self, key: str, *, at: datetime, user_id: str | None = None, limits: Limits = LIMITS) -> Attempt:
        stored = self._tables.attempts.find(key)
        if stored is None:
            stored = Count(0, at, at, user_id)
        allowed = stored.next_at <= at and stored.number < limits.most
        if allowed:
            number = stored.number + 1
            stored = replace(stored, number=number, next_at=next_after(number, at, limits), counted_at=at)
            self._tables.attempts.replace(key, stored)
        return Attempt(allowed, stored.number, NEVER if stored.number >= limits.most else stored.next_at)

    def give_back(self, key: str, attempt: Attempt, *, at: datetime) -> None:
        stored = self._tables.attempts.find(key)
        if stored is not None and stored.number >= attempt.failures:
            next_at = at if stored.number == attempt.failures else stored.next_at
            self._tables.attempts.put(key, replace(stored, number=stored.number - 1, next_at=next_at))

    def failures(self, keys: Collection[str]) -> Mapping[str, int]:
        found = ((key, self._tables.attempts.find(key)) for key in keys)
        return {key: stored.number for key, stored in found if stored is not None}

    def clear(self, key: str) -> None:
        self._tables.attempts.delete_where(lambda known, _: known == key)

    def clear_of_user(self, user_id: str, *, but: str | None = None) -> None:
        self._tables.attempts.delete_where(
            lambda key, count: count.user_id == user_id and (but is None or not key.startswith(but))
        )

    def count(self, key: str, *, at: datetime, span: timedelta, most: int) -> datetime | None:
        stored = self._tables.attempts.find(key)
        if stored is None or stored.next_at <= at:
            stored = Count(0, at + span, at)
        if stored.number >= most:
            return stored.next_at
        self._tables.attempts.put(key, replace(stored, number=stored.number + 1, counted_at=at))
        return None

    def uncount(self, key: str, *, at: datetime, span: timedelta) -> None:
        stored = self._tables.attempts.find(key)
        # A span that began later ends later.
        if stored is not None and stored.number > 0 and stored.next_at <= at + span:
            self._tables.attempts.put(key, replace(stored, number=stored.number - 1))
