"""What lies sealed under a master key, to be sealed anew under another one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

#: What tells a row of its kind: an id, or a record's plugin, kind and key.
PrimaryKey = tuple[str | bytes, ...]


class SealedValueKind(StrEnum):
    """The kinds of rows that hold something sealed, beside signing keys, whose store does this by itself."""

    UPSTREAM_SECRETS = "upstream secrets"
    MESSAGES = "outgoing messages"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """A row, and what is sealed in it."""

    key: PrimaryKey
    sealed: bytes


@dataclass(frozen=True, slots=True)
class SealedValueBatch:
    """What a look has found, and the key to go on behind, None at the end."""

    values: list[SealedValue]
    cursor: PrimaryKey | None


class SealedValueStore(ABC):
    """Goes through all rows of a kind, whoever they belong to."""

    @abstractmethod
    def list_with_other_prefix(
        self, kind: SealedValueKind, active_prefix: bytes, limit: int, *, cursor: PrimaryKey | None = None
    ) -> SealedValueBatch:
        """Of the next ``limit`` rows, in the order of their keys, those whose sealed value is not empty and does not
        begin so. However few these are, a look takes no longer."""

    @abstractmethod
    def replace(self, kind: SealedValueKind, value: SealedValue, sealed: bytes) -> bool:
        """Put ``sealed`` in the place of the value; False if that is not what the row holds any more."""
