"""Signing keys: announced, active, retired, removed; all states are derived from rows and the clock."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class KeyState(StrEnum):
    """State in the life of a signing key."""

    WAITING = "waiting"
    ACTIVE = "active"
    RETIRED = "retired"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A signing key of the service. ``generation`` counts up and is unique, so that two nodes cannot add the same next
    key. ``sealed_private_key`` is encrypted under a master key; ``public_key`` is DER."""

    id: str
    generation: int
    algorithm: str
    public_key: bytes
    sealed_private_key: bytes
    created_at: datetime
    active_at: datetime


@dataclass(frozen=True, slots=True)
class KeySchedule:
    """All signing keys and their states at any time; every node derives the same."""

    keys: tuple[SigningKey, ...]
    publication_period: timedelta

    @classmethod
    def from_keys(cls, keys: Iterable[SigningKey], published_age: timedelta) -> "KeySchedule":
        """Order the keys by generation. ``published_age`` is how long a retired key stays published."""
        return cls(tuple(sorted(keys, key=lambda key: key.generation)), published_age)

    def find(self, key_id: str | None) -> SigningKey | None:
        return next((key for key in self.keys if key.id == key_id), None)

    def active_key(self, now: datetime) -> SigningKey | None:
        """The key to sign with: the newest generation that has started, else the oldest; None without keys. The first
        key was active at once, so only a clock that was set back can precede it."""
        oldest = self.keys[0] if self.keys else None
        return next((key for key in reversed(self.keys) if key.active_at <= now), oldest)

    def has_no_started_key(self, now: datetime) -> bool:
        """True if no key has started, because the clock was set back."""
        return all(key.active_at > now for key in self.keys)

    def next_key(self, now: datetime) -> SigningKey | None:
        """The newest announced key that signs later, if there is one."""
        newest = self.keys[-1] if self.keys else None
        return newest if newest is not None and newest.active_at > now else None

    def retires_at(self, key: SigningKey) -> datetime | None:
        """When a newer generation takes over, if one exists."""
        newer = [signing_key.active_at for signing_key in self.keys if signing_key.generation > key.generation]
        return min(newer) if newer else None

    def published_until(self, key: SigningKey) -> datetime | None:
        """When the key leaves the JWKS, if it has a successor."""
        retires_at = self.retires_at(key)
        return None if retires_at is None else retires_at + self.publication_period

    def key_state(self, key: SigningKey, now: datetime) -> KeyState:
        if key == self.active_key(now):
            return KeyState.ACTIVE
        retires_at = self.retires_at(key)
        if retires_at is not None and retires_at <= now:
            return KeyState.RETIRED if now < retires_at + self.publication_period else KeyState.REMOVED
        return KeyState.WAITING

    def signing_candidates(self, now: datetime) -> Iterator[SigningKey]:
        """Published keys in the order in which they may sign: if the active one cannot be opened, its predecessor,
        which every client knows, and finally announced keys."""
        active = self.active_key(now)
        if active is None:
            return
        yield active
        signing_keys = [key for key in self.published_keys(now) if key != active]
        due = [key for key in signing_keys if key.active_at <= now]
        yield from (*due, *(key for key in reversed(signing_keys) if key not in due))

    def published_keys(self, now: datetime) -> tuple[SigningKey, ...]:
        """The keys in the JWKS: announced, active and retired ones, newest first."""
        return tuple(key for key in reversed(self.keys) if self.key_state(key, now) is not KeyState.REMOVED)
