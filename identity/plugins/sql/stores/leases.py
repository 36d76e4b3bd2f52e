"""Leases in SQL."""

from datetime import datetime

from sqlalchemy import bindparam

from identity.plugins.sql.rows import SqlStore, seconds, upsert
from identity.plugins.sql.tables import leases as table
from identity.storage.stores.leases import LeaseStore

_ACQUIRE = upsert(table, by=table.c.name, replacing=(table.c.until,), where=table.c.until <= bindparam("at"))


class SqlLeaseStore(SqlStore, LeaseStore):
    """One row per name."""

    def acquire(self, name: str, *, at: datetime, until: datetime) -> bool:
        """Take the lease if nobody holds it at this moment."""
        return self._change(_ACQUIRE, {"name": name, "until": seconds(until), "at": seconds(at)}) == 1
