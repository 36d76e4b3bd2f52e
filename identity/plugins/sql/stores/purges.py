"""What is deleted some time after it has served, in SQL: by an index of each moment, oldest first."""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Delete, FromClause, Select, bindparam, delete, func, select, text, tuple_

from identity.domain.attempts import NEVER
from identity.plugins.sql import tables
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.rows import SqlStore
from identity.storage.stores.purges import Purged, PurgeStore


def _over(over_at: Column[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
    """The keys of the rows that were over before, by this column, if they fit the conditions; oldest first."""
    over = select(*over_at.table.primary_key).where(over_at < bindparam("before"), *conditions)
    return over.order_by(over_at).limit(bindparam("limit"))


def _purge(over_at: Column[Any], *conditions: ColumnElement[bool]) -> Delete:
    """Deletes the rows that were over before, by this column, if they fit the conditions."""
    table = over_at.table
    key = tuple_(*table.primary_key)
    return delete(table).where(key.in_(_over(over_at, *conditions)))


def _first(table: FromClause) -> Select[Any]:
    """As many rows as ``limit`` says."""
    return select(*table.primary_key).limit(bindparam("limit"))


def _count(rows: Select[Any]) -> Select[Any]:
    return select(func.count()).select_from(rows.subquery())


#: When rows are over, and which others never are.
_OVER: dict[Purged, tuple[Any, ...]] = {
    Purged.ACCESS_TOKENS: (tables.access_tokens.c.expires_at,),
    Purged.FAMILIES: (tables.token_families.c.ends_at,),
    Purged.CODES: (tables.authorization_codes.c.expires_at, tables.authorization_codes.c.redeemed_at.is_(None)),
    Purged.SESSIONS: (tables.sessions.c.ends_at,),
    Purged.REQUESTS: (tables.authorization_requests.c.expires_at,),
    Purged.MESSAGES: (tables.outgoing_messages.c.expires_at,),
    Purged.ATTEMPTS: (tables.attempts.c.counted_at, tables.attempts.c.next_at < seconds(NEVER)),
    Purged.RECORDS: (tables.records.c.expires_at,),
}
_PURGES = {purged: _purge(*over) for purged, over in _OVER.items()}
_COUNTS_OVER = {purged: _count(_over(*over)) for purged, over in _OVER.items()}
_COUNTS = {purged: _count(_first(over[0].table)) for purged, over in _OVER.items()}
#: What PostgreSQL knows of a table without a look at it: as of the last time it was analysed.
_ESTIMATE = text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(:name)")


class SqlPurgeStore(SqlStore, PurgeStore):
    """One statement for each kind; what goes with a row goes by foreign keys."""

    def of(self, purged: Purged, before: datetime, limit: int) -> int:
        return self._change(_PURGES[purged], {"before": seconds(before), "limit": limit})

    def over(self, purged: Purged, before: datetime, limit: int) -> int:
        row = self._one(_COUNTS_OVER[purged], {"before": seconds(before), "limit": limit})
        return 0 if row is None else int(row[0])

    def kept(self, purged: Purged, limit: int) -> int:
        row = self._one(_COUNTS[purged], {"limit": limit})
        count = 0 if row is None else int(row[0])
        if count < limit or self._link.dialect.name != "postgresql":
            return count
        estimate = self._one(_ESTIMATE, {"name": _OVER[purged][0].table.name})
        return count if estimate is None else max(count, int(estimate[0]))
