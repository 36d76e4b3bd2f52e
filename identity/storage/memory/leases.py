"""Leases, in memory."""

from datetime import datetime

from identity.storage.memory.tables import Tables
from identity.storage.stores.leases import LeaseStore


class MemoryLeaseStore(LeaseStore):
    """Until when each is held, by name."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def acquire(self, name: str, *, at: datetime, until: datetime) -> bool:
        held_until = self._tables.leases.find(name)
        if held_until is not None and at < held_until:
            return False
        self._tables.leases.put(name, until)
        return True
