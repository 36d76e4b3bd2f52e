"""Delete expired rows in small batches, so that no other writer waits long."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from identity.domain.attempts import ATTEMPT_RETENTION
from identity.domain.legal_holds import ALL_TARGETS
from identity.domain.validators import MAX_TOKEN_LIFETIME
from identity.settings import Settings
from identity.storage.backend import Storage
from identity.storage.stores.purges import LEGAL_HOLD_KINDS, PurgeCandidates, PurgeKind

#: Rows that one search reads; the search holds no lock.
SCAN_LIMIT = 1000
#: Rows in the first batch.
BATCH_SIZE = 50
_FEWEST, _MOST = 25, SCAN_LIMIT
#: Target time of a batch in seconds, as far as the last one predicts it: another writer waits for at most one batch.
#: Part of it is disk time that even the smallest batch takes, hence the separate limit for the deletion itself.
_LONGEST_SECONDS, _LONGEST_DELETION = 0.02, 0.005

_FAMILIES = frozenset({PurgeKind.REFRESH_TOKENS, PurgeKind.FAMILIES})
_TOKENS = frozenset({PurgeKind.ACCESS_TOKENS, PurgeKind.CODES})


def purge_cutoff(purged: PurgeKind, settings: Settings, now: datetime) -> datetime | None:
    """Rows that ended before this moment are deleted; None if they are kept forever."""
    if purged is PurgeKind.AUDIT_EVENTS:
        return None if settings.audit_retention is None else now - settings.audit_retention
    return now - _retention(purged, settings)


def _retention(purged: PurgeKind, settings: Settings) -> timedelta:
    if purged is PurgeKind.SESSIONS:
        # An ended session is kept for as long as a token may refer to it.
        return settings.session_retention + MAX_TOKEN_LIFETIME
    if purged in _FAMILIES:
        # Access tokens are deleted with their family, which may have been refreshed just before it ended.
        return settings.token_retention + MAX_TOKEN_LIFETIME
    if purged in _TOKENS:
        return settings.token_retention
    return settings.purge_after + (ATTEMPT_RETENTION if purged is PurgeKind.ATTEMPTS else timedelta())


def find_expired(
    storage: Storage, purged: PurgeKind, before: datetime, legal_hold_ids: Collection[str], since: Any = None
) -> PurgeCandidates:
    """The oldest SCAN_LIMIT expired rows. ``legal_hold_ids`` are people and organizations under a legal hold."""
    if ALL_TARGETS in legal_hold_ids and purged in LEGAL_HOLD_KINDS:
        return PurgeCandidates((), None)
    return storage.purges.find_candidates(purged, before, SCAN_LIMIT, legal_holds=legal_hold_ids, cursor=since)


def purge_batch(
    storage: Storage, purged: PurgeKind, keys: Sequence[Any], before: datetime, legal_holds: Collection[str]
) -> int:
    """Delete one batch of the rows found; returns the number deleted. Legal holds are checked again."""
    if ALL_TARGETS in legal_holds and purged in LEGAL_HOLD_KINDS:
        return 0
    return storage.purges.delete(purged, keys, before, legal_holds=legal_holds)


def count_overdue(
    storage: Storage, purged: PurgeKind, before: datetime, limit: int, legal_holds: Collection[str]
) -> int:
    """Number of rows that ``purge_batch`` would delete, counted up to ``limit``."""
    if ALL_TARGETS in legal_holds and purged in LEGAL_HOLD_KINDS:
        return 0
    return storage.purges.count_expired(purged, before, limit, legal_holds=legal_holds)


@dataclass(frozen=True, slots=True)
class PurgeBatch:
    """Result of a batch: rows deleted, seconds of the deletion, and seconds including the commit."""

    deleted_count: int
    delete_seconds: float
    total_seconds: float

    def next_limit(self, limit: int) -> int:
        """Number of rows for the next batch, after one of this size."""
        if self.delete_seconds > _LONGEST_DELETION or self.total_seconds > _LONGEST_SECONDS:
            return max(_FEWEST, limit // 2)
        return min(_MOST, limit * 2) if self.delete_seconds < _LONGEST_DELETION / 3 else limit
