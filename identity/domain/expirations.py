"""Expiration of keys and personal access tokens: a time, or never."""

from datetime import UTC, datetime

#: How "never" is stored.
NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

#: How "never" is written in requests and responses.
NEVER_TEXT = "never"


class Expiring:
    """What has an expiration date: a key, a personal access token."""

    __slots__ = ()

    expires_at: datetime

    def is_live(self, now: datetime) -> bool:
        """True until the expiration date, exclusive."""
        return now < self.expires_at

    @property
    def never_expires(self) -> bool:
        return self.expires_at == NEVER
