"""Expiration of keys and personal access tokens: a time, or never. End of granted roles: a time, or None."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from identity.domain.messages import gettext_lazy

#: The longest time for which roles can be granted, unless without an end.
MAX_TERM = timedelta(days=3653)

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


class TimeLimited:
    """What may end by itself: roles, a project grant. The end is judged at each use."""

    __slots__ = ()

    until: datetime | None

    def has_ended(self, now: datetime) -> bool:
        """True from the end on, inclusive."""
        return self.until is not None and self.until <= now


def until_problem(until: datetime | None, now: datetime) -> str | None:
    """What is wrong with a new end."""
    if until is None:
        return None
    if until <= now:
        return gettext_lazy("Choose an end in the future.")
    return gettext_lazy("Choose an end within the next 10 years.") if until > now + MAX_TERM else None


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The first of these moments; None, which stands for no end, if there are none."""
    return min((moment for moment in moments if moment is not None), default=None)
