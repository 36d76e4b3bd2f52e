"""How often a password may be tried (NIST SP 800-63B §3.2.2)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: Failures in a row before the next attempt has to wait.
FREE_ATTEMPTS = 5
LONGEST_DELAY = timedelta(seconds=900)
#: After so many failures in a row there is no next attempt.
MOST_ATTEMPTS = 100
#: When the next attempt is, once there is none.
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
#: Fewer failures than that are forgotten so long after the last one, whoever's they are.
REMEMBERED = timedelta(days=30)

#: In which failures of one address are counted, over all accounts, and other requests that strangers could repeat.
ADDRESS_SPAN = timedelta(minutes=10)

#: Mails to one person or address that anybody can ask for.
MAILS_TO_ONE = 5
MAIL_SPAN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many failures in a row are free, and after how many there is no next attempt."""

    free: int = FREE_ATTEMPTS
    most: int = MOST_ATTEMPTS


#: Those that hold where no policy says less.
LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The answer to "may I try": counted as a failure in advance if ``allowed``, until it succeeds or is given back.

    ``next_at`` is the earliest moment for another one, ``failures`` the count that now stands.
    """

    allowed: bool
    failures: int
    next_at: datetime

    @property
    def exhausted(self) -> bool:
        """True once there is no next one."""
        return self.next_at >= NEVER


def delay_after(failures: int, limits: Limits = LIMITS) -> timedelta:
    """How long the next attempt has to wait after so many failures in a row: while they are free not at all, then 1, 2,
    4 … 900 s."""
    if failures < limits.free:
        return timedelta()
    # Beyond 2^10 the longest delay holds, and nobody wants to see 2^95.
    return min(timedelta(seconds=2 ** min(failures - limits.free, 10)), LONGEST_DELAY)


def next_after(failures: int, at: datetime, limits: Limits = LIMITS) -> datetime:
    """The earliest moment for another attempt after so many failures in a row, the last one ``at``."""
    return NEVER if failures >= limits.most else at + delay_after(failures, limits)
