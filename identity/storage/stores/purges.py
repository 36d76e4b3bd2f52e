"""What is deleted some time after it has served."""

from abc import ABC, abstractmethod
from datetime import datetime
from enum import StrEnum


class Purged(StrEnum):
    """What is over at some moment: sessions and families at their absolute end, others when they expire.

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


class PurgeStore(ABC):
    """Deletes rows that have served, with what goes with them, and tells how many there are without a look at all."""

    @abstractmethod
    def of(self, purged: Purged, before: datetime, limit: int) -> int:
        """Delete up to ``limit`` of these that were over before; returns how many went."""

    @abstractmethod
    def over(self, purged: Purged, before: datetime, limit: int) -> int:
        """How many of these were over before: ``limit`` stands for as many and more."""

    @abstractmethod
    def kept(self, purged: Purged, limit: int) -> int:
        """How many of these there are, over or not.

        Exact below ``limit``. From there on an estimate where the storage has one, else ``limit``.
        """
