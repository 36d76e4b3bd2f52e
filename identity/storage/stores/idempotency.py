"""Idempotency keys and what was answered under them."""

from abc import ABC, abstractmethod
from datetime import datetime

from identity.domain.idempotency import IdempotencyRecord


class IdempotencyStore(ABC):
    """One row per key; the unique index decides between racing transactions."""

    @abstractmethod
    def claim(self, record: IdempotencyRecord) -> IdempotencyRecord | None:
        """Take the key by one conditional write: None if this transaction now holds it, else the record that does.

        A record that has expired when ``record`` is created is replaced. Of racing transactions one takes the key; the
        others wait for its end and then see what it stored, or take the key if it was aborted.
        """

    @abstractmethod
    def complete(self, key: bytes, status: int, sealed: bytes) -> None:
        """Keep the answer. Raises Missing."""

    @abstractmethod
    def purge(self, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` records that expired before; returns how many went."""
