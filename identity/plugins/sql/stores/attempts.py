"""Attempts at passwords in SQL."""

from datetime import datetime, timedelta
from itertools import count, takewhile

from sqlalchemy import bindparam, case, delete, or_, select
from sqlalchemy.dialects.postgresql import insert

from identity.domain.attempts import LONGEST_DELAY, MOST_ATTEMPTS, Attempt, delay_after
from identity.plugins.sql.rows import Prepared, Record, SqlStore, moment, seconds
from identity.plugins.sql.tables import attempts as table
from identity.storage.errors import Missing
from identity.storage.stores.attempts import AttemptStore

_AT = bindparam("at", type_=table.c.next_at.type)
_STANDING = (table.c.number, table.c.next_at)
_NEXT_NUMBER = table.c.number + 1
_SHORTER_DELAYS = {
    number: delay_after(number) // timedelta(seconds=1)
    for number in takewhile(lambda number: delay_after(number) < LONGEST_DELAY, count(1))
}
_DELAY = case(_SHORTER_DELAYS, value=_NEXT_NUMBER, else_=LONGEST_DELAY // timedelta(seconds=1))
_OVER = table.c.next_at <= _AT

# Each is one statement that makes the row, or counts in the one that is there if the condition holds. The row is held
# either way, so what is read after a refusal is what refused.
_RESERVE = Prepared(
    insert(table)
    .on_conflict_do_update(
        index_elements=[table.c.key],
        set_={table.c.number: _NEXT_NUMBER, table.c.next_at: _AT + _DELAY, table.c.counted_at: _AT},
        where=_OVER & (table.c.number < MOST_ATTEMPTS),
    )
    .returning(*_STANDING)
)
_COUNT = Prepared(
    insert(table)
    .on_conflict_do_update(
        index_elements=[table.c.key],
        set_={
            table.c.number: case((_OVER, 1), else_=_NEXT_NUMBER),
            table.c.next_at: case((_OVER, insert(table).excluded.next_at), else_=table.c.next_at),
            table.c.counted_at: _AT,
        },
        where=or_(_OVER, table.c.number < bindparam("most")),
    )
    .returning(*_STANDING)
)
_FIND = select(*_STANDING).where(table.c.key == bindparam("name"))
_CLEAR = delete(table).where(table.c.key == bindparam("name"))
_OLD = (
    select(table.c.key)
    .where(table.c.user_id.is_(None), table.c.counted_at < bindparam("before"))
    .order_by(table.c.counted_at)
    .limit(bindparam("limit"))
)
_PURGE = delete(table).where(table.c.key.in_(_OLD))


class SqlAttemptStore(SqlStore, AttemptStore):
    """One row per key."""

    def reserve(self, key: str, *, at: datetime, user_id: str | None = None) -> Attempt:
        """Ask for one attempt, counted at once if it is allowed."""
        now = seconds(at)
        values = {
            "key": key,
            "number": 1,
            "next_at": now + _SHORTER_DELAYS[1],
            "counted_at": now,
            "user_id": user_id,
            "at": now,
        }
        with self._guarded():
            row = self._one(_RESERVE, values)
        number, next_at = row or self._standing(key)
        return Attempt(row is not None, number, moment(next_at))

    def clear(self, key: str) -> None:
        """Forget all failures of this key."""
        self._change(_CLEAR, {"name": key})

    def count(self, key: str, *, at: datetime, span: timedelta, most: int) -> datetime | None:
        """Count one use in the present span of time; None if it was within ``most``."""
        now = seconds(at)
        values = {"key": key, "number": 1, "next_at": seconds(at + span), "counted_at": now, "user_id": None}
        if self._one(_COUNT, {**values, "at": now, "most": most}) is not None:
            return None
        _, over_at = self._standing(key)
        return moment(over_at)

    def purge(self, before: datetime, limit: int) -> int:
        """Delete rows that belong to no user and were last counted before."""
        return self._change(_PURGE, {"before": seconds(before), "limit": limit})

    def _standing(self, key: str) -> Record:
        row = self._one(_FIND, {"name": key})
        if row is None:
            raise Missing
        return row
