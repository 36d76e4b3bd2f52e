"""Leases in SQL."""

from datetime import datetime

from sqlalchemy import bindparam, not_

from identity.domain.attempts import NEVER
from identity.plugins.sql.rows import SqlStore, seconds, upsert
from identity.plugins.sql.tables import leases as table
from identity.storage.stores.leases import LeaseStore

# A moment that is none, which SQLite takes for later than all, holds nothing.
_FREE = not_(table.c.until.between(bindparam("at") + 1, seconds(NEVER)))
_ACQUIRE = upsert(table, by=table.c.name, replacing=(table.c.until,), where=_FREE)


class SqlLeaseStore(SqlStore, LeaseStore):
    """One row per name."""

    def acquire(self, name: str, *, at: datetime, until: datetime) -> bool:
        """Take the lease if nobody holds it at this moment."""
        return self._change(_ACQUIRE, {"name": name, "until": seconds(until), "at": seconds(at)}) == 1
