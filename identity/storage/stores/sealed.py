"""What lies sealed under a master key, to be sealed anew under another one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

#: What tells a row of its kind: an id, or a record's plugin, kind and key.
Key = tuple[str | bytes, ...]


class Sealed(StrEnum):
    """The kinds of rows that hold something sealed, beside signing keys, whose store does this by itself."""

    UPSTREAM_SECRETS = "upstream secrets"
    MESSAGES = "outgoing messages"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class SealedValue:
    """A row, and what is sealed in it."""

    key: Key
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Others:
    """What a look has found, and the key to go on behind, None at the end."""

    values: list[SealedValue]
    last: Key | None


class SealedStore(ABC):
    """Goes through all rows of a kind, whoever they belong to."""

    @abstractmethod
    def others(self, kind: Sealed, beginning: bytes, limit: int, *, after: Key | None = None) -> Others:
        """Of the next ``limit`` rows, in the order of their keys, those whose sealed value is not empty and does not
        begin so. However few these are, a look takes no longer."""

    @abstractmethod
    def replace(self, kind: Sealed, value: SealedValue, sealed: bytes) -> bool:
        """Put ``sealed`` in the place of the value; False if that is not what the row holds any more."""
