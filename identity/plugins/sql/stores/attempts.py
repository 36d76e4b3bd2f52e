"""Password attempts in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from itertools import count, takewhile

from sqlalchemy import and_, bindparam, case, delete, func, literal, or_, select, update

from identity.domain.attempts import (
    DEFAULT_LIMITS,
    MAX_DELAY,
    NO_NEXT_ATTEMPT,
    AttemptAllowance,
    AttemptLimits,
    delay_after,
)
from identity.plugins.sql.column_codecs import CodePointText, datetime_from_seconds, seconds_from_datetime
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.row_mapping import Row, row_reader
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import attempts as table
from identity.storage.errors import RowNotFound
from identity.storage.stores.attempts import AttemptStore

_NOW_PARAM = bindparam("at", type_=table.c.next_at.type)
_ALLOWANCE_COLUMNS = (table.c.number, table.c.next_at)
_NEXT_NUMBER = table.c.number + 1
_SECOND = timedelta(seconds=1)
_FREE_PARAM, _LIMIT_PARAM = (bindparam(name, type_=table.c.number.type) for name in ("free", "most"))
_NONE_FREE = AttemptLimits(free=0)
#: Delays by the number of failures beyond the free ones.
_SHORTER_DELAYS = {
    number: delay_after(number, _NONE_FREE) // _SECOND
    for number in takewhile(lambda number: delay_after(number, _NONE_FREE) < MAX_DELAY, count())
}
_DELAY = case(
    (_NEXT_NUMBER < _FREE_PARAM, 0),
    else_=case(_SHORTER_DELAYS, value=_NEXT_NUMBER - _FREE_PARAM, else_=MAX_DELAY // _SECOND),
)
_NEVER = seconds_from_datetime(NO_NEXT_ATTEMPT)
_IS_EXPIRED = table.c.next_at <= _NOW_PARAM

# Each is one statement that inserts the row, or counts in the existing one if the condition holds. The row is locked
# either way, so a read after a refusal sees what caused it.
_RESERVE = CompiledStatement(
    Upsert(
        table,
        [table.c.key],
        lambda new: {
            table.c.number: _NEXT_NUMBER,
            table.c.next_at: case((_NEXT_NUMBER >= _LIMIT_PARAM, _NEVER), else_=_NOW_PARAM + _DELAY),
            table.c.counted_at: _NOW_PARAM,
        },
        where=and_(_IS_EXPIRED, table.c.number < _LIMIT_PARAM),
        returning=_ALLOWANCE_COLUMNS,
    )
)
_COUNT_USE = CompiledStatement(
    Upsert(
        table,
        [table.c.key],
        lambda new: {
            table.c.number: case((_IS_EXPIRED, 1), else_=_NEXT_NUMBER),
            table.c.next_at: case((_IS_EXPIRED, new("next_at")), else_=table.c.next_at),
            table.c.counted_at: _NOW_PARAM,
        },
        where=or_(_IS_EXPIRED, table.c.number < bindparam("most")),
        returning=_ALLOWANCE_COLUMNS,
    )
)
_KEY_CONDITION = table.c.key == bindparam("name")
_FIND = select(*_ALLOWANCE_COLUMNS).where(_KEY_CONDITION)
_FAILURES = select(table.c.key, table.c.number)
_RESERVED_PARAM = bindparam("reserved", type_=table.c.number.type)
_RELEASE = (
    update(table)
    .where(_KEY_CONDITION, table.c.number >= _RESERVED_PARAM)
    .values(
        number=table.c.number - 1, next_at=case((table.c.number == _RESERVED_PARAM, _NOW_PARAM), else_=table.c.next_at)
    )
)
# A window that began later ends later.
_RELEASE_USE = (
    update(table)
    .where(_KEY_CONDITION, table.c.number > 0, table.c.next_at <= bindparam("span_ends_by"))
    .values(number=table.c.number - 1)
)
_CLEAR = delete(table).where(_KEY_CONDITION)


class SqlAttemptStore(SqlStore, AttemptStore):
    """One row per key."""

    def reserve(
        self, key: str, *, reserved_at: datetime, user_id: str | None = None, limits: AttemptLimits = DEFAULT_LIMITS
    ) -> AttemptAllowance:
        now = seconds_from_datetime(reserved_at)
        values = {
            "key": key,
            "number": 1,
            "next_at": now + delay_after(1, limits) // _SECOND,
            "counted_at": now,
            "user_id": user_id,
            "at": now,
            "free": limits.free,
            "most": limits.max,
        }
        with self._savepoint():
            row = self._fetch_one(_RESERVE, values)
        number, next_at = _read_allowance(row or self._find_allowance(key))
        return AttemptAllowance(row is not None, number, NO_NEXT_ATTEMPT if number >= limits.max else next_at)

    def release(self, key: str, attempt: AttemptAllowance, *, released_at: datetime) -> None:
        self._execute(_RELEASE, {"name": key, "reserved": attempt.failures, "at": seconds_from_datetime(released_at)})

    def count_failures(self, keys: Collection[str]) -> Mapping[str, int]:
        return dict(self._fetch_values_by_id(_FAILURES, table.c.key, keys, _read_failures))

    def clear(self, key: str) -> None:
        self._execute(_CLEAR, {"name": key})

    def clear_for_user(self, user_id: str, *, except_prefix: str | None = None) -> None:
        keys = select(table.c.key).where(table.c.user_id == user_id)
        if except_prefix is not None:
            # MariaDB counts the length of a text in bytes.
            keys = keys.where(func.substr(table.c.key, 1, len(except_prefix)) != literal(except_prefix, CodePointText))
        # In the order in which attempts lock them, names before accounts, to avoid deadlocks.
        self._execute(delete(table).where(table.c.key.in_(keys.order_by(table.c.key).with_for_update())))

    def count_use(self, key: str, *, used_at: datetime, window: timedelta, limit: int) -> datetime | None:
        now = seconds_from_datetime(used_at)
        values = {
            "key": key,
            "number": 1,
            "next_at": seconds_from_datetime(used_at + window),
            "counted_at": now,
            "user_id": None,
        }
        if self._fetch_one(_COUNT_USE, {**values, "at": now, "most": limit}) is not None:
            return None
        return _read_allowance(self._find_allowance(key))[1]

    def release_use(self, key: str, *, released_at: datetime, window: timedelta) -> None:
        self._execute(_RELEASE_USE, {"name": key, "span_ends_by": seconds_from_datetime(released_at + window)})

    def _find_allowance(self, key: str) -> Row:
        row = self._fetch_one(_FIND, {"name": key})
        if row is None:
            raise RowNotFound
        return row


@row_reader(*_ALLOWANCE_COLUMNS)
def _read_allowance(number: int, next_at: int) -> tuple[int, datetime]:
    return number, datetime_from_seconds(next_at)


@row_reader(*_FAILURES.selected_columns)
def _read_failures(key: str, number: int) -> tuple[str, int]:
    return key, number
