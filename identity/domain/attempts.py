"""Limits on password attempts (NIST SP 800-63B §3.2.2)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: Consecutive failures before a delay applies.
FREE_ATTEMPTS = 5
MAX_DELAY = timedelta(seconds=900)
#: After this many consecutive failures no further attempt is allowed.
MAX_ATTEMPTS = 100
#: The time of the next attempt if none is allowed.
NO_NEXT_ATTEMPT = datetime(9999, 12, 31, tzinfo=UTC)
#: Failure counts below that limit are deleted this long after the last failure.
ATTEMPT_RETENTION = timedelta(days=30)

#: Window in which failures per network address are counted across accounts, as are other repeatable anonymous requests.
ADDRESS_WINDOW = timedelta(minutes=10)

#: Wrong codes of other devices in that window, for one signed-in account and over all accounts. A code has 20^8 values,
#: so while 1,000 codes wait, all guesses of a window together find one with a probability of 1 in 25,000.
MAX_CODE_GUESSES_PER_USER = 10
MAX_CODE_GUESSES = 1000

#: Mails that anonymous requests can cause for one user or address.
MAX_MAILS_PER_ADDRESS = 5
MAIL_WINDOW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """Number of free consecutive failures, and the number after which no attempt is allowed."""

    free: int = FREE_ATTEMPTS
    max: int = MAX_ATTEMPTS


#: Limits where no policy is stricter.
DEFAULT_LIMITS = AttemptLimits()


@dataclass(frozen=True, slots=True)
class AttemptAllowance:
    """Whether an attempt is allowed. If ``allowed``, it is counted as a failure in advance, until it succeeds or is
    given back. ``next_attempt_at`` is the earliest time of another attempt, ``failures`` the current count."""

    allowed: bool
    failures: int
    next_attempt_at: datetime

    @property
    def is_exhausted(self) -> bool:
        """True if no further attempt is allowed."""
        return self.next_attempt_at >= NO_NEXT_ATTEMPT


def delay_after(failures: int, limits: AttemptLimits = DEFAULT_LIMITS) -> timedelta:
    """Delay before the next attempt: none while failures are free, then 1, 2, 4 … 900 s."""
    if failures < limits.free:
        return timedelta()
    # Beyond 2^10 the maximum applies; avoids huge powers.
    return min(timedelta(seconds=2 ** min(failures - limits.free, 10)), MAX_DELAY)


def next_attempt_at(failures: int, last_failure_at: datetime, limits: AttemptLimits = DEFAULT_LIMITS) -> datetime:
    """The earliest time of the next attempt."""
    return NO_NEXT_ATTEMPT if failures >= limits.max else last_failure_at + delay_after(failures, limits)
