"""Delete what has expired, in small batches, so that no other writer waits long."""

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

#: How many rows are looked for at a time, while nobody waits for it.
SCAN_LIMIT = 1000
#: How many rows a batch begins with.
BATCH_SIZE = 50
_FEWEST, _MOST = 25, SCAN_LIMIT
#: A writer who comes at the wrong moment waits for one batch: no longer than this, as far as the last one tells. A part
#: of it is the disk's, and is there for the smallest batch too: hence what the deletion alone may take.
_LONGEST_SECONDS, _LONGEST_DELETION = 0.02, 0.005

_FAMILIES = frozenset({PurgeKind.REFRESH_TOKENS, PurgeKind.FAMILIES})
_TOKENS = frozenset({PurgeKind.ACCESS_TOKENS, PurgeKind.CODES})


def purge_cutoff(purged: PurgeKind, settings: Settings, now: datetime) -> datetime | None:
    """What of these was over before this moment goes; None if they are kept for ever."""
    if purged is PurgeKind.AUDIT_EVENTS:
        return None if settings.audit_retention is None else now - settings.audit_retention
    return now - _retention(purged, settings)


def _retention(purged: PurgeKind, settings: Settings) -> timedelta:
    """How long these are kept after they were over."""
    if purged is PurgeKind.SESSIONS:
        # One that was ended is kept for as long as a token that names it.
        return settings.session_retention + MAX_TOKEN_LIFETIME
    if purged in _FAMILIES:
        # Access tokens go with their family, which may have been refreshed just before it ended.
        return settings.token_retention + MAX_TOKEN_LIFETIME
    if purged in _TOKENS:
        return settings.token_retention
    return settings.purge_after + (ATTEMPT_RETENTION if purged is PurgeKind.ATTEMPTS else timedelta())


def find_expired(
    storage: Storage, purged: PurgeKind, before: datetime, legal_hold_ids: Collection[str], since: Any = None
) -> PurgeCandidates:
    """Those of the oldest LOOK of these that are to go. ``legal_hold_ids`` are people and organizations under a legal
    hold.
    """
    if ALL_TARGETS in legal_hold_ids and purged in LEGAL_HOLD_KINDS:
        return PurgeCandidates((), None)
    return storage.purges.find_candidates(purged, before, SCAN_LIMIT, legal_holds=legal_hold_ids, cursor=since)


def purge_batch(
    storage: Storage, purged: PurgeKind, keys: Sequence[Any], before: datetime, legal_holds: Collection[str]
) -> int:
    """Delete one batch of what was found; returns how many went. Others may be held now than when it was found."""
    if ALL_TARGETS in legal_holds and purged in LEGAL_HOLD_KINDS:
        return 0
    return storage.purges.delete(purged, keys, before, legal_holds=legal_holds)


def count_overdue(
    storage: Storage, purged: PurgeKind, before: datetime, limit: int, legal_holds: Collection[str]
) -> int:
    """How many of these ``purge_batch`` would delete: ``limit`` stands for as many and more."""
    if ALL_TARGETS in legal_holds and purged in LEGAL_HOLD_KINDS:
        return 0
    return storage.purges.count_expired(purged, before, limit, legal_holds=legal_holds)


@dataclass(frozen=True, slots=True)
class PurgeBatch:
    """What a batch came to: how many rows went, the seconds that their deletion took, and with the commit."""

    deleted_count: int
    delete_seconds: float
    total_seconds: float

    def next_limit(self, limit: int) -> int:
        """How many rows to take next, after as many as this."""
        if self.delete_seconds > _LONGEST_DELETION or self.total_seconds > _LONGEST_SECONDS:
            return max(_FEWEST, limit // 2)
        return min(_MOST, limit * 2) if self.delete_seconds < _LONGEST_DELETION / 3 else limit
