"""Delete what has expired, in small batches, so that no other writer waits long."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from identity.domain.attempts import REMEMBERED
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.storage.backend import Storage
from identity.storage.stores.purges import Purged

BATCH = 500

#: What is kept for longer. A session that was ended is kept for as long as a token that names it.
_KEPT: Mapping[Purged, timedelta] = {Purged.SESSIONS: LONGEST_TOKEN_LIFETIME, Purged.ATTEMPTS: REMEMBERED}


def purge(storage: Storage, purged: Purged, before: datetime) -> int:
    """Delete one batch of these; returns how many went."""
    return storage.purges.of(purged, before - _KEPT.get(purged, timedelta()), BATCH)


def overdue(storage: Storage, purged: Purged, before: datetime, limit: int) -> int:
    """How many of these a purge with the same moment would delete; ``limit`` stands for as many and more."""
    return storage.purges.over(purged, before - _KEPT.get(purged, timedelta()), limit)
