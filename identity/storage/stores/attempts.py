"""Attempts at passwords, counted over all processes."""

from abc import ABC, abstractmethod
from datetime import datetime, timedelta

from identity.domain.attempts import Attempt


class AttemptStore(ABC):
    """One row per key: an account, a name that nobody has, or an address."""

    @abstractmethod
    def reserve(self, key: str, *, at: datetime, user_id: str | None = None) -> Attempt:
        """Ask for one attempt: counted as a failure at once, by one conditional write, if the delay of
        ``delay_after`` is over and less than MOST_ATTEMPTS stand; otherwise nothing changes.

        ``user_id`` lets the row go with its user, and spares it from purging. The transaction can go on.
        """

    @abstractmethod
    def clear(self, key: str) -> None:
        """Forget all failures of this key; an unknown one is ignored."""

    @abstractmethod
    def count(self, key: str, *, at: datetime, span: timedelta, most: int) -> datetime | None:
        """Count one use in the present span of time, by one conditional write.

        Returns None if it was within ``most``, otherwise the moment at which the span is over. A span begins with the
        first use after the last one was over. Keys are not shared with ``reserve``.
        """

    @abstractmethod
    def purge(self, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` rows that belong to no user and were last counted before; returns how many went."""
