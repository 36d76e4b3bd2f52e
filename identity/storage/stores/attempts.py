"""Password attempts, counted over all processes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from identity.domain.attempts import DEFAULT_LIMITS, AttemptAllowance, AttemptLimits


class AttemptStore(ABC):
    """One row per key: an account, an account at a browser, a login name, or an address."""

    @abstractmethod
    def reserve(
        self, key: str, *, reserved_at: datetime, user_id: str | None = None, limits: AttemptLimits = DEFAULT_LIMITS
    ) -> AttemptAllowance:
        """Reserve an attempt: it counts as a failure at once, by one conditional write, if the time of
        ``next_attempt_at`` has come and the number of failures is below the limit; otherwise nothing changes. The row
        is deleted with the user ``user_id``. The transaction can continue."""

    @abstractmethod
    def release(self, key: str, attempt: AttemptAllowance, *, released_at: datetime) -> None:
        """Release an attempt without an outcome, by one conditional write. Ignored if the key was cleared meanwhile.
        Attempts counted since keep their delay."""

    @abstractmethod
    def count_failures(self, keys: Collection[str]) -> Mapping[str, int]:
        """Failures by key; unknown keys are left out."""

    @abstractmethod
    def clear(self, key: str) -> None:
        """Clear the failures of one key."""

    @abstractmethod
    def clear_for_user(self, user_id: str, *, except_prefix: str | None = None) -> None:
        """Clear the failures of all keys of the user, except those with ``except_prefix``."""

    @abstractmethod
    def count_use(self, key: str, *, used_at: datetime, window: timedelta, limit: int) -> datetime | None:
        """Count one use in the current window, by one conditional write. Returns None if it is within ``limit``,
        otherwise the end of the window. A window begins with the first use after the last one ended. Keys are not
        shared with ``reserve``."""

    @abstractmethod
    def release_use(self, key: str, *, released_at: datetime, window: timedelta) -> None:
        """Release one use counted at this moment, by one conditional write. Ignored after the end of its window."""
