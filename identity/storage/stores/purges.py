"""What is deleted some time after it has served."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum


class Purged(StrEnum):
    """What is over at some moment: sessions and families at their absolute end, audit events when they happened, others
    when they expire.

    A code that was redeemed goes with its family alone. An attempt is over when it was last counted, but never one that
    has no next attempt.
    """

    ACCESS_TOKENS = "access tokens"
    FAMILIES = "token families"
    CODES = "authorization codes"
    SESSIONS = "sessions"
    REQUESTS = "authorization requests"
    MESSAGES = "outgoing messages"
    ATTEMPTS = "attempts"
    RECORDS = "records"
    AUDIT_EVENTS = "audit events"


#: What is somebody's, and so of an organization.
HELD = frozenset({Purged.ACCESS_TOKENS, Purged.FAMILIES, Purged.SESSIONS, Purged.AUDIT_EVENTS})


class PurgeStore(ABC):
    """Deletes rows that have served, with what goes with them, and tells how many there are without a look at all."""

    @abstractmethod
    def of(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        """Delete up to ``limit`` of these that were over before; returns how many went.

        Those of HELD stay that belong to the organizations of ``held`` or to their people. The newest audit event may
        stay, whenever it was.
        """

    @abstractmethod
    def over(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        """How many of these were over before, but for those that are held: ``limit`` stands for as many and more."""

    @abstractmethod
    def kept(self, purged: Purged, limit: int) -> int:
        """How many of these there are, over or not.

        Exact below ``limit``. From there on an estimate where the storage has one, else ``limit``.
        """
