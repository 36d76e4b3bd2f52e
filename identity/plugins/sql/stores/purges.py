"""What is deleted some time after it has served, in SQL: by an index of each moment, oldest first."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    FromClause,
    Select,
    bindparam,
    func,
    or_,
    select,
    text,
)

from identity.domain.attempts import NEVER
from identity.plugins.sql import tables
from identity.plugins.sql.changing import DeleteFirst
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.mapping import Values
from identity.plugins.sql.rows import SqlStore, upsert
from identity.storage.stores.purges import HELD, Purged, PurgeStore

_HELD: BindParameter[str] = bindparam("held", expanding=True)


def _over(over_at: Column[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
    """The keys of the rows that were over before, by this column, if they fit the conditions; oldest first."""
    over = select(*over_at.table.primary_key).where(over_at < bindparam("before"), *conditions)
    return over.order_by(over_at).limit(bindparam("limit"))


def _purge(over_at: Column[Any], *conditions: ColumnElement[bool]) -> DeleteFirst:
    """Deletes the rows that were over before, by this column, if they fit the conditions."""
    return DeleteFirst(_over(over_at, *conditions), over_at < bindparam("before"), *conditions)


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
    Purged.AUDIT_EVENTS: (tables.audit_events.c.at,),
}
_PURGES = {purged: _purge(*over) for purged, over in _OVER.items()}
_COUNTS_OVER = {purged: _count(_over(*over)) for purged, over in _OVER.items()}
_COUNTS = {purged: _count(_first(over[0].table)) for purged, over in _OVER.items()}
#: What PostgreSQL knows of a table without a look at it: as of the last time it was analysed.
_ESTIMATE = text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(:name)")


def _of_others(user_id: Column[Any]) -> ColumnElement[bool]:
    """What is of nobody in the organizations that are held."""
    people = select(tables.users.c.id).where(tables.users.c.id == user_id, tables.users.c.organization_id.in_(_HELD))
    return or_(user_id.is_(None), ~people.exists())


_audit_organization = tables.audit_events.c.organization_id
#: What is of no organization that is held.
_OTHERS: dict[Purged, ColumnElement[bool]] = {
    Purged.ACCESS_TOKENS: _of_others(tables.access_tokens.c.user_id),
    Purged.FAMILIES: _of_others(tables.token_families.c.user_id),
    Purged.SESSIONS: _of_others(tables.sessions.c.user_id),
    Purged.AUDIT_EVENTS: or_(_audit_organization.is_(None), _audit_organization.not_in(_HELD)),
}
_PURGES_BUT_HELD = {purged: _purge(*_OVER[purged], others) for purged, others in _OTHERS.items()}
_COUNTS_OVER_BUT_HELD = {purged: _count(_over(*_OVER[purged], others)) for purged, others in _OTHERS.items()}
_MOVE_FLOOR = upsert(tables.audit_floor, by=[tables.audit_floor.c.id], replacing=[tables.audit_floor.c.kept_since])


class SqlPurgeStore(SqlStore, PurgeStore):
    """One statement for each kind; what goes with a row goes by foreign keys."""

    def of(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        parameters: Values = {"before": seconds(before), "limit": limit}
        if purged is Purged.AUDIT_EVENTS:
            # The database itself lets nothing go that is newer.
            self._change(_MOVE_FLOOR, {"id": 1, "kept_since": seconds(before)})
        if held and purged in HELD:
            purge, parameters = _PURGES_BUT_HELD[purged], {**parameters, "held": list(held)}
        else:
            purge = _PURGES[purged]
        return self._change(purge.statement(self._link.dialect, limit), parameters)

    def over(self, purged: Purged, before: datetime, limit: int, *, held: Collection[str] = ()) -> int:
        parameters = {"before": seconds(before), "limit": limit}
        if held and purged in HELD:
            row = self._one(_COUNTS_OVER_BUT_HELD[purged], {**parameters, "held": list(held)})
        else:
            row = self._one(_COUNTS_OVER[purged], parameters)
        return 0 if row is None else int(row[0])

    def kept(self, purged: Purged, limit: int) -> int:
        row = self._one(_COUNTS[purged], {"limit": limit})
        count = 0 if row is None else int(row[0])
        if count < limit or self._link.dialect.name != "postgresql":
            return count
        estimate = self._one(_ESTIMATE, {"name": _OVER[purged][0].table.name})
        return count if estimate is None else max(count, int(estimate[0]))
