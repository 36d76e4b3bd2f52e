"""One statement for many requests: how greenlets read from and write to a PostgreSQL server.

To send a statement costs both sides as much as executing it or more: each of the two has to be woken, and a write has a
commit of its own. Greenlets that are ready at the same time (``identity.concurrency``) therefore share a statement:

1. The first lets all others run that are ready (``sleep(0)``), so that they come to their statements, too. While the
   same statement is under way for others, it waits for the end of that. The more there is to do, the more of them share
   one, and nothing waits for a request that may not come.
2. Then it executes one statement for all of them, on its own connection.
3. Each takes its own rows. No row means to a write what it means to a statement of its own: it changed nothing.

If the statement is refused, nothing of it was done, and each executes its own and meets its own failure. All fail alike
if they have waited for long, or if nobody can know whether a write was committed.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    CTE,
    JSON,
    BindParameter,
    ClauseElement,
    Column,
    ColumnElement,
    Integer,
    Select,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
)
from sqlalchemy.sql.visitors import iterate, replacement_traverse
from sqlalchemy.types import NullType

from identity.concurrency import Event, running_loop, sleep
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.errors import FAILURES
from identity.plugins.sql.mapping import Row, Values
from identity.plugins.sql.statements import CompiledStatement, Statement, StatementText
from identity.watching import STATEMENT, timed

#: Seconds after which a failure is everybody's: the server is silent, and would be so to each of them again.
_LONG = 1.0

#: Seconds that the next batch waits for the one before, which may be waiting for a lock.
_AT_MOST = 0.005

#: How many share a statement at most.
MOST = 16

Key = tuple[Any, ...]
#: Given the parameters of each, the rows for each key; those without rows are left out. Raises SQLAlchemyError.
Execute = Callable[[Mapping[Key, Values]], Mapping[Key, Sequence[Row]]]
#: The same by a statement and a connection.
Rows = Callable[[StatementText, DatabaseConnection, Mapping[Key, Values]], Mapping[Key, Sequence[Row]]]
#: A statement for several, as executed in one loop.
LoopStatement = tuple[asyncio.AbstractEventLoop, str]


class Batches:
    """Those of connections that are alike."""

    def __init__(self) -> None:
        #: What can still be joined.
        self.open: dict[LoopStatement, Batch] = {}
        #: What was executed last and has not ended.
        self.running: dict[LoopStatement, Batch] = {}


class Batch:
    """What is to be executed together, and, once it was, what came of it."""

    __slots__ = ("asked", "ended", "failure", "rows")

    def __init__(self) -> None:
        self.asked: dict[Key, Values] = {}
        self.rows: Mapping[Key, Sequence[Row]] | None = None
        self.failure: Any = None
        self.ended = Event()

    def execute(self, connection: DatabaseConnection, shared: Execute, *, writes: bool) -> None:
        """Execute the statement for all."""
        began = time.monotonic()
        try:
            self.rows = shared(self.asked)
        except FAILURES as error:
            if time.monotonic() - began > _LONG or (writes and not connection.usable):
                self.failure = error


def batched(
    sql: str,
    key: Key,
    parameters: Values,
    connection: DatabaseConnection,
    shared: Execute,
    alone: Callable[[], Sequence[Row]],
    *,
    writes: bool = False,
) -> Sequence[Row]:
    """The rows for the key, by a statement for several or by one of its own. Raises SQLAlchemyError."""
    loop, batches = running_loop(), connection.batches
    if loop is None or batches is None or connection.in_transaction:
        return alone()
    statement = loop, sql
    batch = batches.open.get(statement)
    if batch is None or (writes and key in batch.asked) or (len(batch.asked) == MOST and key not in batch.asked):
        batch = batches.open[statement] = Batch()
        batch.asked[key] = parameters
        try:
            _let_others_join(batch, statement, batches)
            batches.running[statement] = batch
            if len(batch.asked) == 1:
                # Others may have asked for the same.
                batch.rows = {key: alone()}
            else:
                batch.execute(connection, shared, writes=writes)
        finally:
            if batches.running.get(statement) is batch:
                del batches.running[statement]
            batch.ended.set()
    else:
        batch.asked[key] = parameters
        with timed(STATEMENT, sql):
            batch.ended.wait()
    if batch.failure is not None:
        raise batch.failure
    return alone() if batch.rows is None else batch.rows.get(key, ())


def _let_others_join(batch: Batch, statement: LoopStatement, batches: Batches) -> None:
    running = batches.running.get(statement)
    try:
        if running is None:
            sleep(0)
        else:
            running.ended.wait(_AT_MOST)
    finally:
        if batches.open.get(statement) is batch:
            del batches.open[statement]


#: With an array of keys the server would take whatever is planned once for all to be dearer than what is planned for
#: these, and plan each time.
_KEYS = tuple(f"key_{number}" for number in range(MOST))
#: Hardly a request gives more values for a column than these.
_FEW = _KEYS[:3]


def _filled(values: list[Any], names: Sequence[str]) -> Values:
    """A value for each name; where there are fewer, the last one is given again."""
    return dict(zip(names, [*values, *values[-1:] * (len(names) - len(values))], strict=True))


class BatchedQuery(CompiledStatement):
    """A select with parameters of these names; by ``shared`` several requests are given their ``rows``."""

    def __init__(self, statement: Select[Any], names: Iterable[str], shared: Select[Any], rows: Rows) -> None:
        super().__init__(statement)
        self._names = tuple(names)
        self._shared = shared
        self._rows = rows
        self._text: StatementText | None = None

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        """The first row, or None. Raises SQLAlchemyError."""
        if connection.batches is None:
            return super().first(connection, parameters)
        rows = self.all(connection, parameters)
        return rows[0] if rows else None

    def all(self, connection: DatabaseConnection, parameters: Values) -> Sequence[Row]:
        """All rows. Raises SQLAlchemyError."""
        if connection.batches is None:
            return super().all(connection, parameters)
        text = self._text
        if text is None:
            text = self._text = StatementText.of(self._shared, connection.dialect)
        key = tuple([parameters[name] for name in self._names])
        alone = partial(self._statements_for(connection).all, connection, parameters)
        return batched(text.sql, key, parameters, connection, partial(self._rows, text, connection), alone)


class Lookup(BatchedQuery):
    """A select of the rows in which some columns have given values, by parameters of these names.

    Rows are told apart by the first of the columns, which are among those that are selected. A batch asks by that one,
    and each takes the rows that fit the others.
    """

    def __init__(self, statement: Select[Any], by: Mapping[str, Column[Any]]) -> None:
        first, *_ = by.values()
        selected = list(statement.selected_columns)
        self._positions = tuple(next(at for at, one in enumerate(selected) if one is column) for column in by.values())
        one = statement.where(*(column == bindparam(name) for name, column in by.items()))
        super().__init__(one, by, _where_in(statement, first, _KEYS), self._found)

    def _found(
        self, text: StatementText, connection: DatabaseConnection, asked: Mapping[Key, Values]
    ) -> dict[Key, list[Row]]:
        found: dict[Key, list[Row]] = {}
        for row in text.all(connection, _filled([key[0] for key in asked], _KEYS)):
            found.setdefault(tuple([row[at] for at in self._positions]), []).append(row)
        return found


def _where_in(statement: Select[Any], column: ColumnElement[Any], names: Sequence[str]) -> Select[Any]:
    return statement.where(column.in_([bindparam(name, type_=column.type) for name in names]))


def types_of(statement: ClauseElement) -> dict[str, Any]:
    """The parameters that have to be given, with their types."""
    found = (one for one in iterate(statement) if isinstance(one, BindParameter) and one.required)
    return {one.key: one.type for one in found if not isinstance(one.type, NullType)}


def given_rows(types: Mapping[str, Any]) -> CTE:
    """The parameters of all that share a statement, as rows, which are one parameter themselves: ``rows``.

    With LIMIT the planner knows that they are few.
    """
    columns = [column("number", Integer), *(column(name, kind) for name, kind in types.items())]
    rows = func.json_to_recordset(cast(bindparam("rows"), JSON)).table_valued(*columns).render_derived(with_types=True)
    return select(*rows.c).limit(literal_column(str(MOST))).cte("given")


def by_rows(statement: Statement, rows: CTE) -> Any:
    """The statement, with the columns of the rows in the place of its parameters."""

    def replaced(element: Any, **_: object) -> Any:
        is_given = isinstance(element, BindParameter) and element.key in rows.c
        return rows.c[element.key] if is_given else None

    return replacement_traverse(statement, {}, replaced)


def execute_by_rows(
    text: StatementText, connection: DatabaseConnection, asked: Mapping[Key, Values]
) -> dict[Key, list[Row]]:
    """The rows for each key, by a statement that gives the number of the row of parameters first."""
    # In the same order everywhere: of two writers that wait for a row of each other, both would fail.
    keys, found = sorted(asked), dict[Key, list[Row]]()
    rows = json.dumps([{"number": at, **asked[key]} for at, key in enumerate(keys)], default=_bytea)
    for row in text.all(connection, {"rows": rows}):
        found.setdefault(keys[row[0]], []).append(row[1:])
    return found


def _bytea(value: bytes) -> str:
    return f"\\x{value.hex()}"


class SharedQuery(BatchedQuery):
    """A select whose parameters are not among its columns; it names the table from which it joins others."""

    def __init__(self, statement: Select[Any]) -> None:
        types = types_of(statement)
        rows = given_rows(types)
        columns = (rows.c.number, *statement.selected_columns)
        shared = by_rows(statement.with_only_columns(*columns), rows)
        super().__init__(statement, types, shared, execute_by_rows)


class ListQuery:
    """Selects of the rows in which a column has one of some values. Requests share those for few values."""

    def __init__(self, statement: Select[Any], column: Column[Any]) -> None:
        name, *_ = _FEW
        one = statement.where(column == bindparam(name))
        self._one = SharedQuery(one) if types_of(statement) else Lookup(statement, {name: column})
        self._few = SharedQuery(_where_in(statement, column, _FEW))
        self._many = statement.where(column.in_(bindparam("values", expanding=True)))

    def of(self, values: Collection[Any]) -> tuple[CompiledStatement | Select[Any], Values]:
        """What to execute for these values, of which there is one at least, and its parameters for them."""
        given = list(values)
        if len(given) == 1:
            return self._one, {_FEW[0]: given[0]}
        return (self._many, {"values": given}) if len(given) > len(_FEW) else (self._few, _filled(given, _FEW))
