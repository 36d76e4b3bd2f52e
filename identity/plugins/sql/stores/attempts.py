"""Attempts at passwords in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from itertools import count, takewhile

from sqlalchemy import and_, bindparam, case, delete, func, or_, select, update

from identity.domain.attempts import LIMITS, LONGEST_DELAY, NEVER, Attempt, Limits, delay_after
from identity.plugins.sql.codecs import String, moment, seconds
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.mapping import Row, row_of
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import attempts as table
from identity.storage.errors import Missing
from identity.storage.stores.attempts import AttemptStore

_AT = bindparam("at", type_=table.c.next_at.type)
_STANDING = (table.c.number, table.c.next_at)
_NEXT_NUMBER = table.c.number + 1
_SECOND = timedelta(seconds=1)
_FREE, _MOST = (bindparam(name, type_=table.c.number.type) for name in ("free", "most"))
_NONE_FREE = Limits(free=0)
#: By how many failures there are beyond the free ones.
_SHORTER_DELAYS = {
    number: delay_after(number, _NONE_FREE) // _SECOND
    for number in takewhile(lambda number: delay_after(number, _NONE_FREE) < LONGEST_DELAY, count())
}
_DELAY = case(
    (_NEXT_NUMBER < _FREE, 0),
    else_=case(_SHORTER_DELAYS, value=_NEXT_NUMBER - _FREE, else_=LONGEST_DELAY // _SECOND),
)
_NEVER = seconds(NEVER)
_OVER = table.c.next_at <= _AT

# Each is one statement that makes the row, or counts in the one that is there if the condition holds. The row is held
# either way, so what is read after a refusal is what refused.
_RESERVE = CompiledStatement(
    Upsert(
        table,
        [table.c.key],
        lambda new: {
            table.c.number: _NEXT_NUMBER,
            table.c.next_at: case((_NEXT_NUMBER >= _MOST, _NEVER), else_=_AT + _DELAY),
            table.c.counted_at: _AT,
        },
        where=and_(_OVER, table.c.number < _MOST),
        returning=_STANDING,
    )
)
_COUNT = CompiledStatement(
    Upsert(
        table,
        [table.c.key],
        lambda new: {
            table.c.number: case((_OVER, 1), else_=_NEXT_NUMBER),
            table.c.next_at: case((_OVER, new("next_at")), else_=table.c.next_at),
            table.c.counted_at: _AT,
        },
        where=or_(_OVER, table.c.number < bindparam("most")),
        returning=_STANDING,
    )
)
_NAMED = table.c.key == bindparam("name")
_FIND = select(*_STANDING).where(_NAMED)
_FAILURES = select(table.c.key, table.c.number).where(table.c.key.in_(bindparam("ids", expanding=True)))
_RESERVED = bindparam("reserved", type_=table.c.number.type)
_GIVE_BACK = (
    update(table)
    .where(_NAMED, table.c.number >= _RESERVED)
    .values(number=table.c.number - 1, next_at=case((table.c.number == _RESERVED, _AT), else_=table.c.next_at))
)
# A span that began later ends later.
_UNCOUNT = (
    update(table)
    .where(_NAMED, table.c.number > 0, table.c.next_at <= bindparam("span_ends_by"))
    .values(number=table.c.number - 1)
)
# In the order in which attempts hold them, names before accounts: nobody waits for one and holds what comes later.
_OF_USER = select(table.c.key).where(table.c.user_id == bindparam("owner")).order_by(table.c.key).with_for_update()
# MariaDB counts the length of a text in bytes.
_SPARED = func.substr(table.c.key, 1, bindparam("letters")) == bindparam("but", type_=String)
_CLEAR = delete(table).where(_NAMED)
_CLEAR_OF_USER = delete(table).where(table.c.key.in_(_OF_USER))
_CLEAR_OTHERS = delete(table).where(table.c.key.in_(_OF_USER.where(~_SPARED)))


class SqlAttemptStore(SqlStore, AttemptStore):
    """One row per key."""

    def reserve(self, key: str, *, at: datetime, user_id: str | None = None, limits: Limits = LIMITS) -> Attempt:
        now = seconds(at)
        values = {
            "key": key,
            "number": 1,
            "next_at": now + delay_after(1, limits) // _SECOND,
            "counted_at": now,
            "user_id": user_id,
            "at": now,
            "free": limits.free,
            "most": limits.most,
        }
        with self._guarded():
            row = self._one(_RESERVE, values)
        number, next_at = _standing_of(row or self._standing(key))
        return Attempt(row is not None, number, NEVER if number >= limits.most else next_at)

    def give_back(self, key: str, attempt: Attempt, *, at: datetime) -> None:
        self._change(_GIVE_BACK, {"name": key, "reserved": attempt.failures, "at": seconds(at)})

    def failures(self, keys: Collection[str]) -> Mapping[str, int]:
        return dict(self._many(_FAILURES, keys, _failures_of))

    def clear(self, key: str) -> None:
        self._change(_CLEAR, {"name": key})

    def clear_of_user(self, user_id: str, *, but: str | None = None) -> None:
        if but is None:
            self._change(_CLEAR_OF_USER, {"owner": user_id})
        else:
            self._change(_CLEAR_OTHERS, {"owner": user_id, "but": but, "letters": len(but)})

    def count(self, key: str, *, at: datetime, span: timedelta, most: int) -> datetime | None:
        now = seconds(at)
        values = {"key": key, "number": 1, "next_at": seconds(at + span), "counted_at": now, "user_id": None}
        if self._one(_COUNT, {**values, "at": now, "most": most}) is not None:
            return None
        return _standing_of(self._standing(key))[1]

    def uncount(self, key: str, *, at: datetime, span: timedelta) -> None:
        self._change(_UNCOUNT, {"name": key, "span_ends_by": seconds(at + span)})

    def _standing(self, key: str) -> Row:
        row = self._one(_FIND, {"name": key})
        if row is None:
            raise Missing
        return row


@row_of(*_STANDING)
def _standing_of(number: int, next_at: int) -> tuple[int, datetime]:
    return number, moment(next_at)


@row_of(table.c.key, table.c.number)
def _failures_of(key: str, number: int) -> tuple[str, int]:
    return key, number
