"""Deletion of expired rows."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class PurgeKind(StrEnum):
    """Kinds of rows that expire: sessions and families at their absolute end, refresh tokens with their family, audit
    events by their time, others at their expiration. Refresh tokens come before families, which may have thousands of
    them: deleting one row must not delete many. A redeemed code is deleted only with its family. An attempt expires by
    its last count, but never if it has no next attempt."""

    ACCESS_TOKENS = "access tokens"
    REFRESH_TOKENS = "refresh tokens"
    FAMILIES = "token families"
    CODES = "authorization codes"
    SESSIONS = "sessions"
    REQUESTS = "authorization requests"
    MESSAGES = "outgoing messages"
    WEBHOOK_DELIVERIES = "webhook deliveries"
    ATTEMPTS = "attempts"
    RECORDS = "records"
    AUDIT_EVENTS = "audit events"


#: Kinds of rows that belong to people, and mostly to an organization.
LEGAL_HOLD_KINDS = frozenset(
    {PurgeKind.ACCESS_TOKENS, PurgeKind.REFRESH_TOKENS, PurgeKind.FAMILIES, PurgeKind.SESSIONS, PurgeKind.AUDIT_EVENTS}
)


@dataclass(frozen=True, slots=True)
class PurgeCandidates:
    """Keys to delete, and the cursor of the next search, None at the end. Both are opaque outside the store."""

    keys: Sequence[Any]
    cursor: Any


class PurgeStore(ABC):
    """Deletes expired rows with their dependent rows, and counts them without scanning all. Candidates are found by
    a read session, which blocks no writer. Rows of LEGAL_HOLD_KINDS that belong to the people and organizations
    under a legal hold, or to people of these, stay. An audit event belongs to its actor and to its subject."""

    @abstractmethod
    def find_candidates(
        self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = (), cursor: Any = None
    ) -> PurgeCandidates:
        """The candidates among ``limit`` rows that expired before the moment, oldest first; ``cursor`` is that of the
        previous search. Rows under a legal hold count towards ``limit``: a search takes no longer because of them, and
        may find nothing although there is more behind. Refresh tokens of a family may take several searches with the
        same cursor: the next one finds others once these are deleted. The newest audit event may be left out."""

    @abstractmethod
    def delete(
        self, kind: PurgeKind, keys: Sequence[Any], before: datetime, *, legal_holds: Collection[str] = ()
    ) -> int:
        """Delete the candidates that are still expired; returns the number deleted. Rows that others are changing may
        stay."""

    @abstractmethod
    def count_expired(self, kind: PurgeKind, before: datetime, limit: int, *, legal_holds: Collection[str] = ()) -> int:
        """Number of rows that expired before the moment, except those under a legal hold; counted up to ``limit``. If
        very many old rows are under a legal hold, rows behind them need not be counted."""

    @abstractmethod
    def count_stored(self, kind: PurgeKind, limit: int) -> int:
        """Number of rows of this kind, expired or not. Exact below ``limit``. From there on an estimate if the storage
        has one, else ``limit``."""
