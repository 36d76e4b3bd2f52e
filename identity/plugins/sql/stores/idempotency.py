"""Idempotency keys and what was answered under them, in SQL."""

from datetime import datetime

from sqlalchemy import bindparam, delete, select, update

from identity.domain.idempotency import IdempotencyRecord
from identity.plugins.sql.rows import SqlStore, moment, row_of, seconds, upsert
from identity.plugins.sql.tables import idempotency_records as table
from identity.storage.errors import Missing
from identity.storage.stores.idempotency import IdempotencyStore

_COLUMNS = (
    table.c.key,
    table.c.request,
    table.c.created_at,
    table.c.expires_at,
    table.c.status,
    table.c.sealed,
)

# One statement that makes the row or replaces an expired one. It waits for whoever is making the row; what is read
# after a refusal is what that one stored, and is held.
_CLAIM = upsert(
    table,
    by=table.c.key,
    replacing=_COLUMNS[1:],
    where=table.c.expires_at <= bindparam("now", type_=table.c.expires_at.type),
)
_FIND = select(*_COLUMNS).where(table.c.key == bindparam("name"))
_COMPLETE = update(table).where(table.c.key == bindparam("name"))
_OLD = (
    select(table.c.key)
    .where(table.c.expires_at < bindparam("before"))
    .order_by(table.c.expires_at)
    .limit(bindparam("limit"))
)
_PURGE = delete(table).where(table.c.key.in_(_OLD))


class SqlIdempotencyStore(SqlStore, IdempotencyStore):
    """One row per key."""

    def claim(self, record: IdempotencyRecord) -> IdempotencyRecord | None:
        """Take the key; the record that holds it if it is taken."""
        values = {
            "key": record.key,
            "request": record.request,
            "created_at": seconds(record.created_at),
            "expires_at": seconds(record.expires_at),
            "status": record.status,
            "sealed": record.sealed,
            "now": seconds(record.created_at),
        }
        if self._try(_CLAIM, values):
            return None
        row = self._one(_FIND, {"name": record.key})
        if row is None:
            raise Missing
        return _record_of(*row)

    def complete(self, key: bytes, status: int, sealed: bytes) -> None:
        """Keep the answer."""
        self._touch_one(_COMPLETE, {"name": key, "status": status, "sealed": sealed})

    def purge(self, before: datetime, limit: int) -> int:
        """Delete records that expired before."""
        return self._change(_PURGE, {"before": seconds(before), "limit": limit})


@row_of(*_COLUMNS)
def _record_of(
    key: bytes, request: bytes, created_at: int, expires_at: int, status: int, sealed: bytes
) -> IdempotencyRecord:
    return IdempotencyRecord(
        key=key,
        request=request,
        created_at=moment(created_at),
        expires_at=moment(expires_at),
        status=status,
        sealed=sealed,
    )
