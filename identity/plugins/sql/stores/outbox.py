"""The outbox in SQL."""

from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import Select, bindparam, case, delete, func, or_, select, update

from identity.domain.outbox import OutboxBacklog, OutboxMessage
from identity.plugins.sql.column_codecs import datetime_from_seconds, seconds_from_datetime
from identity.plugins.sql.row_mapping import MappedTable, row_reader, skip_unreadable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import outgoing_messages as table
from identity.storage.stores.outbox import OutboxStore

_MAPPED_TABLE = MappedTable[OutboxMessage](table)
_KIND_CONDITION = table.c.kind == bindparam("kind")
_LIST_PENDING = (
    _MAPPED_TABLE.select.where(_KIND_CONDITION, table.c.expires_at > bindparam("at"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
    .offset(bindparam("passed"))
)
_IS_DUE = (_KIND_CONDITION, table.c.expires_at > bindparam("at"), table.c.next_at <= bindparam("at"))
_FIRST_AT = func.min(table.c.next_at)
# Messages per organization are never counted: there may be a hundred thousand.
_LANES = (
    select(table.c.bulk, table.c.organization_id)
    .where(*_IS_DUE)
    .group_by(table.c.bulk, table.c.organization_id)
    .order_by(table.c.bulk, _FIRST_AT)
    .limit(bindparam("limit"))
    .offset(bindparam("passed"))
)
_LIST_LANE = (
    _MAPPED_TABLE.select.where(*_IS_DUE, table.c.bulk == bindparam("bulk"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
    .offset(bindparam("passed"))
)
_LIST_ORGANIZATION_LANE = _LIST_LANE.where(table.c.organization_id == bindparam("organization"))
_LIST_LANE_WITHOUT_ORGANIZATION = _LIST_LANE.where(table.c.organization_id.is_(None))
_IS_EXPIRED = table.c.expires_at <= bindparam("at")
_BACKLOG = select(
    func.count(case((_IS_EXPIRED, None), else_=1)), func.count(case((_IS_EXPIRED, 1))), func.min(table.c.created_at)
).where(_KIND_CONDITION, or_(_IS_EXPIRED, table.c.attempts > 0))
_FIRST_MESSAGES = (
    select(table.c.created_at)
    .where(_KIND_CONDITION, table.c.expires_at > bindparam("at"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
    .subquery()
)
_OLDEST_CREATED_AT = select(func.min(_FIRST_MESSAGES.c.created_at))
_POSTPONE = (
    update(table)
    .where(table.c.id == bindparam("message"))
    .values(next_at=bindparam("at"), attempts=table.c.attempts + 1)
)
_DELETE = delete(table).where(table.c.id == bindparam("message"))


class SqlOutboxStore(SqlStore, OutboxStore):
    """One row per message."""

    def add(self, message: OutboxMessage) -> None:
        self._execute_in_savepoint(_MAPPED_TABLE.insert, _MAPPED_TABLE.to_row(message))

    def list_pending(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        return self._list_readable(_LIST_PENDING, kind, now, limit)

    def list_due(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        turns: list[tuple[OutboxMessage, ...]] = []
        for passed in count(0, limit):
            lanes = self._fetch_all(
                _LANES, {"kind": kind, "at": seconds_from_datetime(now), "limit": limit, "passed": passed}
            )
            # An organization whose first messages are unreadable must not block the others.
            turns += filter(None, (self._list_lane(kind, now, limit, *lane) for lane in lanes))
            if len(turns) >= limit or len(lanes) < limit:
                break
        found = [turn for messages in turns for turn in enumerate(messages)]
        found.sort(key=lambda item: (item[1].bulk, item[0], item[1].next_at, item[1].id))
        return tuple(message for _, message in found[:limit])

    def _list_lane(
        self, kind: str, now: datetime, limit: int, bulk: Any, organization_id: str | None
    ) -> tuple[OutboxMessage, ...]:
        if organization_id is None:
            return self._list_readable(_LIST_LANE_WITHOUT_ORGANIZATION, kind, now, limit, bulk=bulk)
        return self._list_readable(_LIST_ORGANIZATION_LANE, kind, now, limit, bulk=bulk, organization=organization_id)

    def _list_readable(
        self, statement: Select[Any], kind: str, now: datetime, limit: int, **lane: Any
    ) -> tuple[OutboxMessage, ...]:
        messages: list[OutboxMessage] = []
        for passed in count(0, limit):
            rows = self._fetch_all(
                statement, {"kind": kind, "at": seconds_from_datetime(now), "limit": limit, "passed": passed, **lane}
            )
            messages += skip_unreadable(_MAPPED_TABLE.from_row, rows)
            if len(messages) >= limit or len(rows) < limit:
                break
        return tuple(messages[:limit])

    def get_backlog(self, kind: str, now: datetime) -> OutboxBacklog:
        ((failing, given_up, since),) = self._fetch_all(_BACKLOG, {"kind": kind, "at": seconds_from_datetime(now)})
        return OutboxBacklog(failing=failing, abandoned=given_up, oldest_at=_earliest(since))

    def oldest_created_at(self, kind: str, now: datetime, limit: int) -> datetime | None:
        ((oldest,),) = self._fetch_all(
            _OLDEST_CREATED_AT, {"kind": kind, "at": seconds_from_datetime(now), "limit": limit}
        )
        return _earliest(oldest)

    def postpone(self, message_id: str, next_at: datetime) -> None:
        self._execute_for_one(_POSTPONE, {"message": message_id, "at": seconds_from_datetime(next_at)})

    def delete(self, message_id: str) -> None:
        self._execute_for_one(_DELETE, {"message": message_id})


def _earliest(stored: int | None) -> datetime | None:
    """The least of several timestamps; None if there is none."""
    return None if stored is None else next(skip_unreadable(_read_created_at, [(stored,)]), None)


_read_created_at = row_reader(table.c.next_at)(datetime_from_seconds)
