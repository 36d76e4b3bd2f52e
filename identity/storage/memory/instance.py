"""The instance, in memory."""

from identity.domain.instance import Instance
from identity.storage.memory.entities import MemoryStore
from identity.storage.stores.instance import InstanceStore


class MemoryInstanceStore(MemoryStore, InstanceStore):
    """One row under a fixed key."""

    def find(self) -> Instance | None:
        return self._tables.instance.find("instance")

    def add(self, instance: Instance) -> None:
        self._tables.instance.insert({"instance": instance})
