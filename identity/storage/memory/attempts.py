"""Password attempts, in memory."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from identity.domain.attempts import DEFAULT_LIMITS, NO_NEXT_ATTEMPT, AttemptAllowance, AttemptLimits, next_attempt_at
from identity.storage.memory.entity_store import MemoryStore
from identity.storage.memory.tables import AttemptCount
from identity.storage.stores.attempts import AttemptStore


class MemoryAttemptStore(MemoryStore, AttemptStore):
    """Counts by key."""

    def reserve(
        self, key: str, *, reserved_at: datetime, user_id: str | None = None, limits: AttemptLimits = DEFAULT_LIMITS
    ) -> AttemptAllowance:
        stored = self._tables.attempts.find(key)
        if stored is None:
            stored = AttemptCount(0, reserved_at, reserved_at, user_id)
        allowed = stored.next_at <= reserved_at and stored.number < limits.max
        if allowed:
            number = stored.number + 1
            stored = replace(
                stored, number=number, next_at=next_attempt_at(number, reserved_at, limits), counted_at=reserved_at
            )
            self._tables.attempts.replace(key, stored)
        return AttemptAllowance(
            allowed, stored.number, NO_NEXT_ATTEMPT if stored.number >= limits.max else stored.next_at
        )

    def release(self, key: str, attempt: AttemptAllowance, *, released_at: datetime) -> None:
        stored = self._tables.attempts.find(key)
        if stored is not None and stored.number >= attempt.failures:
            next_at = released_at if stored.number == attempt.failures else stored.next_at
            self._tables.attempts.replace_unchecked(key, replace(stored, number=stored.number - 1, next_at=next_at))

    def count_failures(self, keys: Collection[str]) -> Mapping[str, int]:
        found = ((key, self._tables.attempts.find(key)) for key in keys)
        return {key: stored.number for key, stored in found if stored is not None}

    def clear(self, key: str) -> None:
        self._tables.attempts.delete_where(lambda known, _: known == key)

    def clear_for_user(self, user_id: str, *, except_prefix: str | None = None) -> None:
        self._tables.attempts.delete_where(
            lambda key, count: count.user_id == user_id and (except_prefix is None or not key.startswith(except_prefix))
        )

    def count_use(self, key: str, *, used_at: datetime, window: timedelta, limit: int) -> datetime | None:
        stored = self._tables.attempts.find(key)
        if stored is None or stored.next_at <= used_at:
            stored = AttemptCount(0, used_at + window, used_at)
        if stored.number >= limit:
            return stored.next_at
        self._tables.attempts.replace_unchecked(key, replace(stored, number=stored.number + 1, counted_at=used_at))
        return None

    def release_use(self, key: str, *, released_at: datetime, window: timedelta) -> None:
        stored = self._tables.attempts.find(key)
        # A window that began later ends later.
        if stored is not None and stored.number > 0 and stored.next_at <= released_at + window:
            self._tables.attempts.replace_unchecked(key, replace(stored, number=stored.number - 1))
