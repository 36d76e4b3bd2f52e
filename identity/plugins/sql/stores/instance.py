"""The instance in SQL."""

from sqlalchemy import insert, select

from identity.domain.instance import Instance
from identity.plugins.sql.rows import SqlStore, moment, row_of, seconds
from identity.plugins.sql.tables import instance as table
from identity.storage.stores.instance import InstanceStore

_COLUMNS = (table.c.organization_id, table.c.project_id, table.c.created_at)
_FIND = select(*_COLUMNS)
_ADD = insert(table)


class SqlInstanceStore(SqlStore, InstanceStore):
    """One row at most."""

    def find(self) -> Instance | None:
        """The instance, or None before bootstrap."""
        row = self._one(_FIND, {})
        return None if row is None else _instance_of(*row)

    def add(self, instance: Instance) -> None:
        """Store it."""
        values = {
            "id": 1,
            "organization_id": instance.organization_id,
            "project_id": instance.project_id,
            "created_at": seconds(instance.created_at),
        }
        self._try(_ADD, values)


@row_of(*_COLUMNS)
def _instance_of(organization_id: str, project_id: str, created_at: int) -> Instance:
    return Instance(organization_id=organization_id, project_id=project_id, created_at=moment(created_at))
