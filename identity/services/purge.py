"""Delete what has expired, in small batches, so that no other writer waits long."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from identity.domain.attempts import REMEMBERED
from identity.domain.legal_holds import EVERYTHING
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.settings import Settings
from identity.storage.backend import Storage
from identity.storage.stores.purges import HELD, Found, Purged

#: How many rows are looked for at a time, while nobody waits for it.
LOOK = 1000
#: How many rows a batch begins with.
BATCH = 50
_FEWEST, _MOST = 25, LOOK
#: A writer who comes at the wrong moment waits for one batch: no longer than this, as far as the last one tells. A part
#: of it is the disk's, and is there for the smallest batch too: hence what the deletion alone may take.
_LONGEST_SECONDS, _LONGEST_DELETION = 0.02, 0.005

_FAMILIES = frozenset({Purged.REFRESH_TOKENS, Purged.FAMILIES})
_TOKENS = frozenset({Purged.ACCESS_TOKENS, Purged.CODES})


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
    if purged in _FAMILIES:
        # Access tokens go with their family, which may have been refreshed just before it ended.
        return settings.token_retention + LONGEST_TOKEN_LIFETIME
    if purged in _TOKENS:
        return settings.token_retention
    return settings.purge_after + (REMEMBERED if purged is Purged.ATTEMPTS else timedelta())


def find(storage: Storage, purged: Purged, before: datetime, held: Collection[str], since: Any = None) -> Found:
    """Those of the oldest LOOK of these that are to go. ``held`` are people and organizations under a legal hold."""
    if EVERYTHING in held and purged in HELD:
        return Found((), None)
    return storage.purges.find(purged, before, LOOK, held=held, since=since)


def purge(storage: Storage, purged: Purged, keys: Sequence[Any], before: datetime, held: Collection[str]) -> int:
    """Delete one batch of what was found; returns how many went. Others may be held now than when it was found."""
    if EVERYTHING in held and purged in HELD:
        return 0
    return storage.purges.delete(purged, keys, before, held=held)


def overdue(storage: Storage, purged: Purged, before: datetime, limit: int, held: Collection[str]) -> int:
    """How many of these ``purge`` would delete: ``limit`` stands for as many and more."""
    if EVERYTHING in held and purged in HELD:
        return 0
    return storage.purges.over(purged, before, limit, held=held)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch came to: how many rows went, the seconds that their deletion took, and with the commit."""

    gone: int
    deletion: float
    whole: float

    def next_limit(self, limit: int) -> int:
        """How many rows to take next, after as many as this."""
        if self.deletion > _LONGEST_DELETION or self.whole > _LONGEST_SECONDS:
            return max(_FEWEST, limit // 2)
        return min(_MOST, limit * 2) if self.deletion < _LONGEST_DELETION / 3 else limit
