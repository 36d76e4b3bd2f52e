"""Sealed values, for resealing under another master key."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

#: Primary key of a row of its kind: an id, or a record's plugin, kind and key.
PrimaryKey = tuple[str | bytes, ...]


class SealedValueKind(StrEnum):
    """The kinds of rows with a sealed value, except signing keys, whose store has its own method."""

    UPSTREAM_SECRETS = "upstream secrets"
    WEBHOOK_SECRETS = "webhook secrets"
    MESSAGES = "outgoing messages"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """A row's key and its sealed value."""

    key: PrimaryKey
    sealed: bytes


@dataclass(frozen=True, slots=True)
class SealedValueBatch:
    """Values found by a search, and the key to continue after, None at the end."""

    values: list[SealedValue]
    cursor: PrimaryKey | None


class SealedValueStore(ABC):
    """Reads all rows of a kind, of all organizations."""

    @abstractmethod
    def list_with_other_prefix(
        self, kind: SealedValueKind, active_prefix: bytes, limit: int, *, cursor: PrimaryKey | None = None
    ) -> SealedValueBatch:
        """Of the next ``limit`` rows by key, those whose sealed value is not empty and lacks the prefix. The cost does
        not depend on how many there are."""

    @abstractmethod
    def replace(self, kind: SealedValueKind, value: SealedValue, sealed: bytes) -> bool:
        """Replace the value; False if the row no longer holds it."""
