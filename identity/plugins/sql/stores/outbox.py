"""The outbox in SQL."""

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import ColumnElement, Select, case, delete, func, or_, select, update

from identity.domain.outbox import OutboxBacklog, OutboxMessage
from identity.plugins.sql.column_codecs import datetime_from_seconds, seconds_from_datetime
from identity.plugins.sql.row_mapping import MappedTable, row_reader, skip_unreadable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.tables import outgoing_messages as table
from identity.storage.stores.outbox import OutboxStore

_MAPPED_TABLE = MappedTable[OutboxMessage](table)
_FIRST_TRIED = (table.c.next_at, table.c.id)
# Messages per organization are never counted: there may be a hundred thousand.
_LANES = (
    select(table.c.bulk, table.c.organization_id)
    .group_by(table.c.bulk, table.c.organization_id)
    .order_by(table.c.bulk, func.min(table.c.next_at))
)


class SqlOutboxStore(SqlStore, OutboxStore):
    """One row per message."""

    def add(self, message: OutboxMessage) -> None:
        self._execute_in_savepoint(_MAPPED_TABLE.insert, _MAPPED_TABLE.to_row(message))

    def list_pending(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        return self._list_readable(_MAPPED_TABLE.select.where(*_is_pending(kind, now)), limit)

    def list_due(self, kind: str, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        is_due = (*_is_pending(kind, now), table.c.next_at <= seconds_from_datetime(now))
        turns: list[tuple[OutboxMessage, ...]] = []
        for passed in count(0, limit):
            lanes = self._fetch_all(_LANES.where(*is_due).limit(limit).offset(passed))
            # An organization whose first messages are unreadable must not block the others.
            turns += filter(None, (self._list_readable(_lane_select(is_due, *lane), limit) for lane in lanes))
            if len(turns) >= limit or len(lanes) < limit:
                break
        found = [turn for messages in turns for turn in enumerate(messages)]
        found.sort(key=lambda item: (item[1].bulk, item[0], item[1].next_at, item[1].id))
        return tuple(message for _, message in found[:limit])

    def _list_readable(self, statement: Select[Any], limit: int) -> tuple[OutboxMessage, ...]:
        messages: list[OutboxMessage] = []
        for passed in count(0, limit):
            rows = self._fetch_all(statement.order_by(*_FIRST_TRIED).limit(limit).offset(passed))
            messages += skip_unreadable(_MAPPED_TABLE.from_row, rows)
            if len(messages) >= limit or len(rows) < limit:
                break
        return tuple(messages[:limit])

    def get_backlog(self, kind: str, now: datetime) -> OutboxBacklog:
        expired = table.c.expires_at <= seconds_from_datetime(now)
        counts = func.count(case((expired, None), else_=1)), func.count(case((expired, 1)))
        backlog = select(*counts, func.min(table.c.created_at))
        ((failing, given_up, since),) = self._fetch_all(
            backlog.where(table.c.kind == kind, or_(expired, table.c.attempts > 0))
        )
        return OutboxBacklog(failing=failing, abandoned=given_up, oldest_at=_earliest(since))

    def oldest_created_at(self, kind: str, now: datetime, limit: int) -> datetime | None:
        first = select(table.c.created_at).where(*_is_pending(kind, now)).order_by(*_FIRST_TRIED).limit(limit)
        ((oldest,),) = self._fetch_all(select(func.min(first.subquery().c.created_at)))
        return _earliest(oldest)

    def find(self, message_id: str) -> OutboxMessage | None:
        rows = self._fetch_all(_MAPPED_TABLE.select.where(table.c.id == message_id))
        return next(skip_unreadable(_MAPPED_TABLE.from_row, rows), None)

    def list_newest(self, kind: str, limit: int) -> tuple[OutboxMessage, ...]:
        newest = _MAPPED_TABLE.select.where(table.c.kind == kind).order_by(table.c.created_at.desc(), table.c.id.desc())
        return tuple(skip_unreadable(_MAPPED_TABLE.from_row, self._fetch_all(newest.limit(limit))))

    def postpone(self, message_id: str, next_at: datetime, answer: str | None = None) -> None:
        values = {
            "next_at": seconds_from_datetime(next_at),
            "attempts": table.c.attempts + 1,
            "last_answer": answer,
        }
        self._execute_for_one(update(table).where(table.c.id == message_id).values(values))

    def reschedule(self, message_id: str, next_at: datetime, expires_at: datetime) -> None:
        values = {"next_at": seconds_from_datetime(next_at), "expires_at": seconds_from_datetime(expires_at)}
        self._execute_for_one(update(table).where(table.c.id == message_id).values(values))

    def delete(self, message_id: str) -> None:
        self._execute_for_one(delete(table).where(table.c.id == message_id))


def _is_pending(kind: str, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return table.c.kind == kind, table.c.expires_at > seconds_from_datetime(now)


def _lane_select(is_due: Sequence[ColumnElement[bool]], bulk: int | bool, organization_id: str | None) -> Select[Any]:
    """The due messages of one organization, bulk ones or the others."""
    return _MAPPED_TABLE.select.where(*is_due, table.c.bulk == bulk, table.c.organization_id == organization_id)


def _earliest(stored: int | None) -> datetime | None:
    """The least of several timestamps; None if there is none."""
    return None if stored is None else next(skip_unreadable(_read_created_at, [(stored,)]), None)


_read_created_at = row_reader(table.c.next_at)(datetime_from_seconds)
