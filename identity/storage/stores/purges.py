"""What is deleted some time after it has served."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class PurgeKind(StrEnum):
    """What is over at some moment: sessions and families at their absolute end, refresh tokens with their family, audit
    events when they happened, others when they expire.

    Refresh tokens come before families, which may have thousands of them: what goes with one row is to be little. A
    code that was redeemed goes with its family alone. An attempt is over when it was last counted, but never one that
    has no next attempt.
    """

    ACCESS_TOKENS = "access tokens"
    REFRESH_TOKENS = "refresh tokens"
    FAMILIES = "token families"
    CODES = "authorization codes"
    SESSIONS = "sessions"
    REQUESTS = "authorization requests"
    MESSAGES = "outgoing messages"
    ATTEMPTS = "attempts"
    RECORDS = "records"
    AUDIT_EVENTS = "audit events"


#: What is somebody's, and mostly of an organization.
LEGAL_HOLD_KINDS = frozenset(
    {PurgeKind.ACCESS_TOKENS, PurgeKind.REFRESH_TOKENS, PurgeKind.FAMILIES, PurgeKind.SESSIONS, PurgeKind.AUDIT_EVENTS}
)


@dataclass(frozen=True, slots=True)
class PurgeCandidates:
    """What is to go: keys, and the place to go on from, None at the end. Only the store itself understands either."""

    keys: Sequence[Any]
    cursor: Any


class PurgeStore(ABC):
    """Deletes rows that have served, with what goes with them, and tells how many there are without a look at all.

    They are found by whoever only reads, and nobody waits for that. Those of LEGAL_HOLD_KINDS stay that belong to the
    people and organizations of ``legal_holds``, or to people of these. An audit event belongs to whoever acted, too,
    and to whom it is about.
    """

    @abstractmethod
    def find_candidates(
        self,
        kind: PurgeKind,
        before: datetime,
        limit: int,
        *,
        legal_holds: Collection[str] = (),
        cursor: Any = None,
    ) -> PurgeCandidates:
        """What goes of ``limit`` of these that were over before, the oldest first; from the ``last`` of the look before
        on, if it is given as ``cursor``.

        All of them are looked at and those that are held are left out: a look takes no longer however many these are,
        and may find nothing where there is more behind. Refresh tokens of families may be found in several looks, from
        the same place on: the next one finds others once these are gone. The newest audit event may be left out,
        whenever it was.
        """

    @abstractmethod
    def delete(
        self, kind: PurgeKind, keys: Sequence[Any], before: datetime, *, legal_holds: Collection[str] = ()
    ) -> int:
        """Delete those of the found keys of which it still holds that they were over before; returns how many went.

        What others are changing at this moment may stay.
        """

    @abstractmethod
    def count_expired(self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = ()) -> int:
        """How many of these were over before, but for those that are held: ``limit`` stands for as many and more.

        Where very many are held that were over first, those behind them need not be counted.
        """

    @abstractmethod
    def count_stored(self, kind: PurgeKind, limit: int) -> int:
        """How many of these there are, over or not.

        Exact below ``limit``. From there on an estimate where the storage has one, else ``limit``.
        """
