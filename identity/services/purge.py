"""Delete what has expired, in small batches, so that no other writer waits long."""

from collections.abc import Collection
from datetime import datetime, timedelta

from identity.domain.attempts import REMEMBERED
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.services.legal_holds import EVERYTHING
from identity.settings import Settings
from identity.storage.backend import Storage
from identity.storage.stores.purges import HELD, Purged

#: How many rows a batch begins with.
BATCH = 200
_FEWEST, _MOST = 25, 2000
#: A writer who comes at the wrong moment waits for one batch: no longer than this, as far as the last one tells.
_LONGEST_SECONDS = 0.02

_TOKENS = frozenset({Purged.ACCESS_TOKENS, Purged.FAMILIES, Purged.CODES})


def purged_before(purged: Purged, settings: Settings, now: datetime) -> datetime | None:
    """What of these was over before this moment goes; None if they are kept for ever."""
    if purged is Purged.AUDIT_EVENTS:
        return None if settings.audit_retention is None else now - settings.audit_retention
    return now - _kept(purged, settings)


def _kept(purged: Purged, settings: Settings) -> timedelta:
    """How long these are kept after they were over."""
    if purged is Purged.SESSIONS:
        # One that was ended is kept for as long as a token that names it.
        return settings.session_retention + LONGEST_TOKEN_LIFETIME
    if purged in _TOKENS:
        return settings.token_retention
    return settings.purge_after + (REMEMBERED if purged is Purged.ATTEMPTS else timedelta())


def purge(storage: Storage, purged: Purged, before: datetime, limit: int, held: Collection[str]) -> int:
    """Delete one batch of these; returns how many went. ``held`` are the organizations under a legal hold."""
    if EVERYTHING in held and purged in HELD:
        return 0
    return storage.purges.of(purged, before, limit, held=held)


def overdue(storage: Storage, purged: Purged, before: datetime, limit: int, held: Collection[str]) -> int:
    """How many of these ``purge`` would delete: ``limit`` stands for as many and more."""
    if EVERYTHING in held and purged in HELD:
        return 0
    return storage.purges.over(purged, before, limit, held=held)


def next_limit(limit: int, seconds: float) -> int:
    """How many rows to take next, after so many took so long."""
    if seconds > _LONGEST_SECONDS:
        return max(_FEWEST, limit // 2)
    return min(_MOST, limit * 2) if seconds < _LONGEST_SECONDS / 4 else limit
