"""The outbox in SQL."""

from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import Select, bindparam, case, delete, func, or_, select, update

from identity.domain.outbox import Backlog, OutgoingMessage
from identity.plugins.sql.codecs import moment, seconds
from identity.plugins.sql.mapping import Mapped, readable, row_of
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.tables import outgoing_messages as table
from identity.storage.stores.outbox import OutboxStore

_ROWS = Mapped[OutgoingMessage](table)
_OF_KIND = table.c.kind == bindparam("kind")
_WAITING = (
    _ROWS.select.where(_OF_KIND, table.c.expires_at > bindparam("at"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
    .offset(bindparam("passed"))
)
_IS_DUE = (_OF_KIND, table.c.expires_at > bindparam("at"), table.c.next_at <= bindparam("at"))
_FIRST_AT = func.min(table.c.next_at)
# What an organization has waiting is counted by no statement: it may be a hundred thousand messages.
_LANES = (
    select(table.c.bulk, table.c.organization_id)
    .where(*_IS_DUE)
    .group_by(table.c.bulk, table.c.organization_id)
    .order_by(table.c.bulk, _FIRST_AT)
    .limit(bindparam("limit"))
    .offset(bindparam("passed"))
)
_OF_LANE = (
    _ROWS.select.where(*_IS_DUE, table.c.bulk == bindparam("bulk"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
    .offset(bindparam("passed"))
)
_OF_ORGANIZATION = _OF_LANE.where(table.c.organization_id == bindparam("organization"))
_OF_NONE = _OF_LANE.where(table.c.organization_id.is_(None))
_GIVEN_UP = table.c.expires_at <= bindparam("at")
_BACKLOG = select(
    func.count(case((_GIVEN_UP, None), else_=1)),
    func.count(case((_GIVEN_UP, 1))),
    func.min(table.c.created_at),
).where(_OF_KIND, or_(_GIVEN_UP, table.c.attempts > 0))
_FIRST = (
    select(table.c.created_at)
    .where(_OF_KIND, table.c.expires_at > bindparam("at"))
    .order_by(table.c.next_at, table.c.id)
    .limit(bindparam("limit"))
    .subquery()
)
_OLDEST = select(func.min(_FIRST.c.created_at))
_POSTPONE = (
    update(table)
    .where(table.c.id == bindparam("message"))
    .values(next_at=bindparam("at"), attempts=table.c.attempts + 1)
)
_REMOVE = delete(table).where(table.c.id == bindparam("message"))


class SqlOutboxStore(SqlStore, OutboxStore):
    """One row per message."""

    def add(self, message: OutgoingMessage) -> None:
        self._try(_ROWS.insert, _ROWS.values(message))

    def waiting(self, kind: str, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        return self._readable(_WAITING, kind, at, limit)

    def due(self, kind: str, at: datetime, limit: int) -> tuple[OutgoingMessage, ...]:
        turns: list[tuple[OutgoingMessage, ...]] = []
        for passed in count(0, limit):
            lanes = self._all(_LANES, {"kind": kind, "at": seconds(at), "limit": limit, "passed": passed})
            # One in which nothing can be read stays the first for ever, and takes no other's place.
            turns += filter(None, (self._of_lane(kind, at, limit, *lane) for lane in lanes))
            if len(turns) >= limit or len(lanes) < limit:
                break
        found = [turn for messages in turns for turn in enumerate(messages)]
        found.sort(key=lambda one: (one[1].bulk, one[0], one[1].next_at, one[1].id))
        return tuple(message for _, message in found[:limit])

    def _of_lane(
        self, kind: str, at: datetime, limit: int, bulk: Any, organization_id: str | None
    ) -> tuple[OutgoingMessage, ...]:
        if organization_id is None:
            return self._readable(_OF_NONE, kind, at, limit, bulk=bulk)
        return self._readable(_OF_ORGANIZATION, kind, at, limit, bulk=bulk, organization=organization_id)

    def _readable(
        self, statement: Select[Any], kind: str, at: datetime, limit: int, **lane: Any
    ) -> tuple[OutgoingMessage, ...]:
        found: list[OutgoingMessage] = []
        for passed in count(0, limit):
            rows = self._all(statement, {"kind": kind, "at": seconds(at), "limit": limit, "passed": passed, **lane})
            found += readable(_ROWS.of, rows)
            if len(found) >= limit or len(rows) < limit:
                break
        return tuple(found[:limit])

    def backlog(self, kind: str, at: datetime) -> Backlog:
        ((failing, given_up, since),) = self._all(_BACKLOG, {"kind": kind, "at": seconds(at)})
        return Backlog(failing=failing, given_up=given_up, since=_least_of(since))

    def oldest(self, kind: str, at: datetime, limit: int) -> datetime | None:
        ((oldest,),) = self._all(_OLDEST, {"kind": kind, "at": seconds(at), "limit": limit})
        return _least_of(oldest)

    def postpone(self, message_id: str, next_at: datetime) -> None:
        self._touch_one(_POSTPONE, {"message": message_id, "at": seconds(next_at)})

    def remove(self, message_id: str) -> None:
        self._touch_one(_REMOVE, {"message": message_id})


def _least_of(stored: int | None) -> datetime | None:
    """The least of several moments, if there is any; what is none comes after all others."""
    return None if stored is None else next(readable(_moment_of, [(stored,)]), None)


_moment_of = row_of(table.c.next_at)(moment)
