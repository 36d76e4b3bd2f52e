"""Attempts at passwords, counted over all processes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from identity.domain.attempts import DEFAULT_LIMITS, AttemptAllowance, AttemptLimits


class AttemptStore(ABC):
    """One row per key: an account, a browser of one, a login name, or an address."""

    @abstractmethod
    def reserve(
        self, key: str, *, reserved_at: datetime, user_id: str | None = None, limits: AttemptLimits = DEFAULT_LIMITS
    ) -> AttemptAllowance:
        """Ask for one attempt: counted as a failure at once, by one conditional write, if the moment of
        ``next_attempt_at`` has come and fewer failures stand than there can be; otherwise nothing changes.

        ``user_id`` lets the row go with its user. The transaction can go on.
        """

    @abstractmethod
    def release(self, key: str, attempt: AttemptAllowance, *, released_at: datetime) -> None:
        """Take back an attempt that was allowed and came to nothing, by one conditional write.

        Ignored if the key was cleared meanwhile. Attempts that were counted since keep their delay.
        """

    @abstractmethod
    def count_failures(self, keys: Collection[str]) -> Mapping[str, int]:
        """How many failures stand, by key; a key of which nothing is known is left out."""

    @abstractmethod
    def clear(self, key: str) -> None:
        """Forget the failures of one key."""

    @abstractmethod
    def clear_for_user(self, user_id: str, *, except_prefix: str | None = None) -> None:
        """Forget all failures of all keys of the user, except those that begin with ``except_prefix``."""

    @abstractmethod
    def count_use(self, key: str, *, used_at: datetime, window: timedelta, limit: int) -> datetime | None:
        """Count one use in the present span of time, by one conditional write.

        Returns None if it was within ``limit``, otherwise the moment at which the span is over. A span begins with the
        first use after the last one was over. Keys are not shared with ``reserve``.
        """

    @abstractmethod
    def release_use(self, key: str, *, released_at: datetime, window: timedelta) -> None:
        """Take back one use that was counted at this moment, by one conditional write.

        Ignored once its span is over.
        """
