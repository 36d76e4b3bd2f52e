"""Signing keys: announced, active, retired, removed; all states are derived from rows and the clock."""

from collections.abc import Iterable, Iterator, Mapping
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
    """A signing key of the service. ``generation`` counts up over all algorithms and is unique, so that two nodes
    cannot add the same next key. ``sealed_private_key`` is encrypted under a master key; ``public_key`` is DER.
    ``retired_at`` is set if its algorithm was switched off."""

    id: str
    generation: int
    algorithm: str
    public_key: bytes
    sealed_private_key: bytes
    created_at: datetime
    active_at: datetime
    retired_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalImpact:
    """What ends with a withdrawn key. ``live_tokens`` are JWT access tokens that were issued while it was active, so at
    most as many were signed by it; without ``is_exact`` there are more. Others may accept what it signed until
    ``accepted_until``, when their copy of the JWKS must end."""

    key: SigningKey
    live_tokens: int
    is_exact: bool
    accepted_until: datetime


@dataclass(frozen=True, slots=True)
class KeySchedule:
    """The signing keys of one algorithm and their states at any time; every node derives the same."""

    keys: tuple[SigningKey, ...]
    publication_period: timedelta

    @classmethod
    def from_keys(cls, keys: Iterable[SigningKey], published_age: timedelta) -> "KeySchedule":
        """Order the keys by generation. ``published_age`` is how long a retired key stays published."""
        return cls(tuple(sorted(keys, key=lambda key: key.generation)), published_age)

    def find(self, key_id: str | None) -> SigningKey | None:
        return next((key for key in self.keys if key.id == key_id), None)

    def active_key(self, now: datetime) -> SigningKey | None:
        """The key to sign with: the newest generation that has started and is not retired; None without one. After the
        clock was set back, the oldest key counts as started if it was active at once, or created later than now."""
        usable = [key for key in self.keys if key.retired_at is None or key.retired_at > now]
        oldest = usable[0] if usable and not usable[0].created_at <= now < usable[0].active_at else None
        return next((key for key in reversed(usable) if key.active_at <= now), oldest)

    def has_no_started_key(self, now: datetime) -> bool:
        """True if no key has started, because the clock was set back."""
        return all(key.active_at > now for key in self.keys)

    def next_key(self, now: datetime) -> SigningKey | None:
        """The newest announced key that signs later, if there is one."""
        newest = self.keys[-1] if self.keys else None
        return newest if newest is not None and newest.active_at > now and newest.retired_at is None else None

    def retires_at(self, key: SigningKey) -> datetime | None:
        """When a newer generation takes over, or the algorithm was switched off; None before either."""
        ends = [signing_key.active_at for signing_key in self.keys if signing_key.generation > key.generation]
        if key.retired_at is not None:
            ends.append(key.retired_at)
        return min(ends) if ends else None

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


@dataclass(frozen=True, slots=True)
class KeySchedules:
    """All signing keys, oldest generation first, and the schedule of each algorithm."""

    keys: tuple[SigningKey, ...]
    by_algorithm: Mapping[str, KeySchedule]

    @classmethod
    def from_keys(cls, keys: Iterable[SigningKey], published_age: timedelta) -> "KeySchedules":
        ordered = tuple(sorted(keys, key=lambda key: key.generation))
        groups: dict[str, list[SigningKey]] = {}
        for key in ordered:
            groups.setdefault(key.algorithm, []).append(key)
        return cls(ordered, {name: KeySchedule(tuple(group), published_age) for name, group in groups.items()})

    @property
    def next_generation(self) -> int:
        return self.keys[-1].generation + 1 if self.keys else 1

    def find(self, key_id: str | None) -> SigningKey | None:
        return next((key for key in self.keys if key.id == key_id), None)

    def active_key(self, algorithm: str, now: datetime) -> SigningKey | None:
        schedule = self.by_algorithm.get(algorithm)
        return None if schedule is None else schedule.active_key(now)

    def next_key(self, algorithm: str, now: datetime) -> SigningKey | None:
        schedule = self.by_algorithm.get(algorithm)
        return None if schedule is None else schedule.next_key(now)

    def signing_candidates(self, algorithms: Iterable[str], now: datetime) -> Iterator[SigningKey]:
        """The keys that may sign with one of the algorithms, in this order."""
        for algorithm in algorithms:
            if algorithm in self.by_algorithm:
                yield from self.by_algorithm[algorithm].signing_candidates(now)

    def published_keys(self, now: datetime) -> tuple[SigningKey, ...]:
        """The keys in the JWKS, newest first."""
        return tuple(
            key
            for key in reversed(self.keys)
            if self.by_algorithm[key.algorithm].key_state(key, now) is not KeyState.REMOVED
        )
