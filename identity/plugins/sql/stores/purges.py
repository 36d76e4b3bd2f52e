"""What is deleted some time after it has served, in SQL: by an index of each moment, oldest first."""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Delete, bindparam, delete, select, tuple_

from identity.domain.attempts import NEVER
from identity.plugins.sql import tables
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.rows import SqlStore
from identity.storage.stores.purges import Purged, PurgeStore


def _purge(over_at: Column[Any], *conditions: ColumnElement[bool]) -> Delete:
    """Deletes the rows that were over before, by this column, if they fit the conditions."""
    table = over_at.table
    key = tuple_(*table.primary_key)
    over = select(*table.primary_key).where(over_at < bindparam("before"), *conditions)
    return delete(table).where(key.in_(over.order_by(over_at).limit(bindparam("limit"))))


_PURGES = {
    Purged.ACCESS_TOKENS: _purge(tables.access_tokens.c.expires_at),
    Purged.FAMILIES: _purge(tables.token_families.c.ends_at),
    Purged.CODES: _purge(tables.authorization_codes.c.expires_at, tables.authorization_codes.c.redeemed_at.is_(None)),
    Purged.SESSIONS: _purge(tables.sessions.c.ends_at),
    Purged.REQUESTS: _purge(tables.authorization_requests.c.expires_at),
    Purged.MESSAGES: _purge(tables.outgoing_messages.c.expires_at),
    Purged.ATTEMPTS: _purge(tables.attempts.c.counted_at, tables.attempts.c.next_at < seconds(NEVER)),
    Purged.RECORDS: _purge(tables.records.c.expires_at),
}


class SqlPurgeStore(SqlStore, PurgeStore):
    """One statement for each kind; what goes with a row goes by foreign keys."""

    def of(self, purged: Purged, before: datetime, limit: int) -> int:
        return self._change(_PURGES[purged], {"before": seconds(before), "limit": limit})
