"""Used assertion identifiers in SQL."""

from datetime import datetime

from sqlalchemy import bindparam, delete, select, tuple_

from identity.plugins.sql.rows import SqlStore, add_unless_there, seconds
from identity.plugins.sql.tables import assertions as table
from identity.storage.errors import AlreadyUsed
from identity.storage.stores.assertions import AssertionStore

_USE = add_unless_there(table, table.c.user_id, table.c.jti)
_EXPIRED = (
    select(table.c.user_id, table.c.jti)
    .where(table.c.until < bindparam("before"))
    .order_by(table.c.until)
    .limit(bindparam("limit"))
)
_PURGE = delete(table).where(tuple_(table.c.user_id, table.c.jti).in_(_EXPIRED))


class SqlAssertionStore(SqlStore, AssertionStore):
    """One row per user and jti. It stays when the user goes: an id never comes back."""

    def use(self, user_id: str, jti: str, until: datetime) -> None:
        """Record the use."""
        if not self._change(_USE, {"user_id": user_id, "jti": jti, "until": seconds(until)}):
            raise AlreadyUsed

    def purge(self, before: datetime, limit: int) -> int:
        """Delete rows whose ``until`` lies before."""
        return self._change(_PURGE, {"before": seconds(before), "limit": limit})
