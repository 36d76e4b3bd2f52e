"""How often a password may be tried (NIST SP 800-63B §3.2.2)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: Failures in a row before the next attempt has to wait.
FREE_ATTEMPTS = 5
MAX_DELAY = timedelta(seconds=900)
#: After so many failures in a row there is no next attempt.
MAX_ATTEMPTS = 100
#: When the next attempt is, once there is none.
NO_NEXT_ATTEMPT = datetime(9999, 12, 31, tzinfo=UTC)
#: Fewer failures than that are forgotten so long after the last one, whoever's they are.
ATTEMPT_RETENTION = timedelta(days=30)

#: In which failures of one address are counted, over all accounts, and other requests that strangers could repeat.
ADDRESS_WINDOW = timedelta(minutes=10)

#: Mails to one person or address that anybody can ask for.
MAX_MAILS_PER_ADDRESS = 5
MAIL_WINDOW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """How many failures in a row are free, and after how many there is no next attempt."""

    free: int = FREE_ATTEMPTS
    max: int = MAX_ATTEMPTS


#: Those that hold where no policy says less.
DEFAULT_LIMITS = AttemptLimits()


@dataclass(frozen=True, slots=True)
class AttemptAllowance:
    """The answer to "may I try": counted as a failure in advance if ``allowed``, until it succeeds or is given back.

    ``next_attempt_at`` is the earliest moment for another one, ``failures`` the count that now stands.
    """

    allowed: bool
    failures: int
    next_attempt_at: datetime

    @property
    def is_exhausted(self) -> bool:
        """True once there is no next one."""
        return self.next_attempt_at >= NO_NEXT_ATTEMPT


def delay_after(failures: int, limits: AttemptLimits = DEFAULT_LIMITS) -> timedelta:
    """How long the next attempt has to wait after so many failures in a row: while they are free not at all, then 1, 2,
    4 … 900 s."""
    if failures < limits.free:
        return timedelta()
    # Beyond 2^10 the longest delay holds, and nobody wants to see 2^95.
    return min(timedelta(seconds=2 ** min(failures - limits.free, 10)), MAX_DELAY)


def next_attempt_at(failures: int, last_failure_at: datetime, limits: AttemptLimits = DEFAULT_LIMITS) -> datetime:
    """The earliest moment for another attempt after so many failures in a row, the last one ``last_failure_at``."""
    return NO_NEXT_ATTEMPT if failures >= limits.max else last_failure_at + delay_after(failures, limits)
