"""The instance, in memory."""

from identity.domain.instance import Instance
from identity.storage.memory.tables import Tables
from identity.storage.stores.instance import InstanceStore


class MemoryInstanceStore(InstanceStore):
    """One row under a fixed key."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def find(self) -> Instance | None:
        return self._tables.instance.find("instance")

    def add(self, instance: Instance) -> None:
        self._tables.instance.insert("instance", instance, named="instance")
