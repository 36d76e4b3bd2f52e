"""The instance in SQL."""

from identity.domain.instance import Instance
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.tables import instance as table
from identity.storage.stores.instance import InstanceStore

_ROWS = Mapped[Instance](table)


class SqlInstanceStore(SqlStore, InstanceStore):
    """One row at most."""

    def find(self) -> Instance | None:
        return self._find(_ROWS.of, _ROWS.select, {})

    def add(self, instance: Instance) -> None:
        self._try(_ROWS.insert, _ROWS.values(instance))
