"""Used assertion identifiers, in memory."""

from datetime import datetime

from identity.storage.errors import AlreadyUsed
from identity.storage.memory.tables import Tables, purge
from identity.storage.stores.assertions import AssertionStore


class MemoryAssertionStore(AssertionStore):
    """Until when each is kept, by user id and jti."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def use(self, user_id: str, jti: str, until: datetime) -> None:
        if (user_id, jti) in self._tables.assertions:
            raise AlreadyUsed
        self._tables.assertions.put((user_id, jti), until)

    def purge(self, before: datetime, limit: int) -> int:
        table = self._tables.assertions
        return purge(table, limit, lambda until: until < before, table.delete)
