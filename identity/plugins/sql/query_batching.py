"""Query batching: how greenlets share statements to a PostgreSQL server.

Sending a statement costs both sides as much as executing it or more: each has to be woken, and a write has its own
commit. Greenlets that are ready at the same time (``identity.concurrency``) therefore share a statement:

1. The first one lets all others run that are ready (``sleep(0)``), so that they reach their statements, too. If the
   same statement is running for others, it waits for its end. The higher the load, the larger the batches; nothing
   waits for a request that may not come.
2. Then it executes one statement for all of them, on its own connection.
3. Each takes its own rows. No row means to a write what it means for a single statement: it changed nothing.

If the statement is refused, nothing was changed, and each executes its own and gets its own error. All of them fail
if they have waited for long, or if it is unknown whether a write was committed.
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

from identity.api.plugins import Measurement
from identity.concurrency import Event, greenlet_event_loop, sleep
from identity.instrumentation import measure_duration
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.errors import DATABASE_ERRORS
from identity.plugins.sql.row_mapping import Row, Values
from identity.plugins.sql.statements import CompiledStatement, Statement, StatementText

#: After a failure that took this many seconds there is no retry: the server is silent.
_SLOW_QUERY_SECONDS = 1.0

#: Seconds that a batch waits for the one before, which may be waiting for a lock.
_MAX_JOIN_SECONDS = 0.005

#: Maximum number of callers per statement.
MAX_BATCH_SIZE = 16

BatchKey = tuple[Any, ...]
#: Takes the parameters of each key and returns its rows; keys without rows are left out. Raises SQLAlchemyError.
ExecuteBatch = Callable[[Mapping[BatchKey, Values]], Mapping[BatchKey, Sequence[Row]]]
#: Like ExecuteBatch, with a statement and a connection.
FetchBatchRows = Callable[
    [StatementText, DatabaseConnection, Mapping[BatchKey, Values]], Mapping[BatchKey, Sequence[Row]]
]
#: A batch statement in one event loop.
LoopStatement = tuple[asyncio.AbstractEventLoop, str]


class QueryBatches:
    """The batches of connections of the same kind."""

    def __init__(self) -> None:
        #: Batches that can still be joined.
        self.joinable: dict[LoopStatement, QueryBatch] = {}
        #: The last batch executed of each statement, until it ends.
        self.running: dict[LoopStatement, QueryBatch] = {}


class QueryBatch:
    """Parameters to execute together, and the result."""

    __slots__ = ("ended", "failure", "parameters", "rows")

    def __init__(self) -> None:
        self.parameters: dict[BatchKey, Values] = {}
        self.rows: Mapping[BatchKey, Sequence[Row]] | None = None
        self.failure: Any = None
        self.ended = Event()

    def execute(self, connection: DatabaseConnection, execute_batch: ExecuteBatch, *, writes: bool) -> None:
        began = time.monotonic()
        try:
            self.rows = execute_batch(self.parameters)
        except DATABASE_ERRORS as error:
            if time.monotonic() - began > _SLOW_QUERY_SECONDS or (writes and not connection.is_usable):
                self.failure = error


def execute_batched(
    sql: str,
    key: BatchKey,
    parameters: Values,
    connection: DatabaseConnection,
    execute_batch: ExecuteBatch,
    execute_single: Callable[[], Sequence[Row]],
    *,
    writes: bool = False,
) -> Sequence[Row]:
    """The rows for the key, from a batch statement or one of its own. Raises SQLAlchemyError."""
    loop, batches = greenlet_event_loop(), connection.query_batches
    if loop is None or batches is None or connection.in_transaction:
        return execute_single()
    statement = loop, sql
    batch = batches.joinable.get(statement)
    if (
        batch is None
        or (writes and key in batch.parameters)
        or (len(batch.parameters) == MAX_BATCH_SIZE and key not in batch.parameters)
    ):
        batch = batches.joinable[statement] = QueryBatch()
        batch.parameters[key] = parameters
        try:
            _wait_for_joiners(batch, statement, batches)
            batches.running[statement] = batch
            if len(batch.parameters) == 1:
                # Others may have the same key.
                batch.rows = {key: execute_single()}
            else:
                batch.execute(connection, execute_batch, writes=writes)
        finally:
            if batches.running.get(statement) is batch:
                del batches.running[statement]
            batch.ended.set()
    else:
        batch.parameters[key] = parameters
        with measure_duration(Measurement.STATEMENT, sql):
            batch.ended.wait()
    if batch.failure is not None:
        raise batch.failure
    return execute_single() if batch.rows is None else batch.rows.get(key, ())


def _wait_for_joiners(batch: QueryBatch, statement: LoopStatement, batches: QueryBatches) -> None:
    running = batches.running.get(statement)
    try:
        if running is None:
            sleep(0)
        else:
            running.ended.wait(_MAX_JOIN_SECONDS)
    finally:
        if batches.joinable.get(statement) is batch:
            del batches.joinable[statement]


#: Separate parameters instead of an array, for which the server would estimate its generic plan to be too expensive,
#: and plan each time.
_KEY_PARAMETERS = tuple(f"key_{number}" for number in range(MAX_BATCH_SIZE))
#: Requests rarely ask for more values of a column.
_VALUE_PARAMETERS = _KEY_PARAMETERS[:3]


def _pad_parameters(values: list[Any], names: Sequence[str]) -> Values:
    """A value for each name; missing ones repeat the last value."""
    return dict(zip(names, [*values, *values[-1:] * (len(names) - len(values))], strict=True))


class BatchedQuery(CompiledStatement):
    """A select with parameters of these names; ``rows`` runs ``batch_select`` for several requests at once."""

    def __init__(
        self, statement: Select[Any], names: Iterable[str], batch_select: Select[Any], rows: FetchBatchRows
    ) -> None:
        super().__init__(statement)
        self._parameter_names = tuple(names)
        self._batch_select = batch_select
        self._fetch_batch_rows = rows
        self._batch_text: StatementText | None = None

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        if connection.query_batches is None:
            return super().first(connection, parameters)
        rows = self.all(connection, parameters)
        return rows[0] if rows else None

    def all(self, connection: DatabaseConnection, parameters: Values) -> Sequence[Row]:
        if connection.query_batches is None:
            return super().all(connection, parameters)
        text = self._batch_text
        if text is None:
            text = self._batch_text = StatementText.from_statement(self._batch_select, connection.dialect)
        key = tuple([parameters[name] for name in self._parameter_names])
        alone = partial(self._executable_for(connection).all, connection, parameters)
        return execute_batched(
            text.sql, key, parameters, connection, partial(self._fetch_batch_rows, text, connection), alone
        )


class BatchedLookup(BatchedQuery):
    """A select of the rows in which some columns have given values, the parameters of these names. Rows are assigned by
    the first of the columns, which must be selected. A batch queries by that one, and each caller takes the rows that
    match the others."""

    def __init__(self, statement: Select[Any], parameters: Mapping[str, Column[Any]]) -> None:
        first, *_ = parameters.values()
        selected = list(statement.selected_columns)
        self._positions = tuple(
            next(at for at, item in enumerate(selected) if item is column) for column in parameters.values()
        )
        single = statement.where(*(column == bindparam(name) for name, column in parameters.items()))
        super().__init__(single, parameters, _where_in(statement, first, _KEY_PARAMETERS), self._execute_batch)

    def _execute_batch(
        self, text: StatementText, connection: DatabaseConnection, parameters: Mapping[BatchKey, Values]
    ) -> dict[BatchKey, list[Row]]:
        found: dict[BatchKey, list[Row]] = {}
        for row in text.all(connection, _pad_parameters([key[0] for key in parameters], _KEY_PARAMETERS)):
            found.setdefault(tuple([row[at] for at in self._positions]), []).append(row)
        return found


def _where_in(statement: Select[Any], column: ColumnElement[Any], names: Sequence[str]) -> Select[Any]:
    return statement.where(column.in_([bindparam(name, type_=column.type) for name in names]))


def parameter_types(statement: ClauseElement) -> dict[str, Any]:
    """The required parameters, with their types."""
    found = (item for item in iterate(statement) if isinstance(item, BindParameter) and item.required)
    return {item.key: item.type for item in found if not isinstance(item.type, NullType)}


def parameter_rows_cte(types: Mapping[str, Any]) -> CTE:
    """The parameters of a batch as rows, which are one parameter themselves: ``rows``. LIMIT lets the planner know that
    they are few."""
    columns = [column("number", Integer), *(column(name, kind) for name, kind in types.items())]
    rows = func.json_to_recordset(cast(bindparam("rows"), JSON)).table_valued(*columns).render_derived(with_types=True)
    return select(*rows.c).limit(literal_column(str(MAX_BATCH_SIZE))).cte("given")


def bind_to_rows(statement: Statement, rows: CTE) -> Any:
    """The statement with its parameters replaced by columns of the rows."""

    def replaced(element: Any, **_: object) -> Any:
        is_given = isinstance(element, BindParameter) and element.key in rows.c
        return rows.c[element.key] if is_given else None

    return replacement_traverse(statement, {}, replaced)


def execute_for_rows(
    text: StatementText, connection: DatabaseConnection, parameters: Mapping[BatchKey, Values]
) -> dict[BatchKey, list[Row]]:
    """The rows for each key, from a statement that returns the number of the parameter row first."""
    # In the same order everywhere, so that writers do not deadlock.
    keys, found = sorted(parameters), dict[BatchKey, list[Row]]()
    rows = json.dumps([{"number": at, **parameters[key]} for at, key in enumerate(keys)], default=_bytea_text)
    for row in text.all(connection, {"rows": rows}):
        found.setdefault(keys[row[0]], []).append(row[1:])
    return found


def _bytea_text(value: bytes) -> str:
    return f"\\x{value.hex()}"


class BatchedJoin(BatchedQuery):
    """A select whose parameters are not among its columns; it names the table from which it joins others."""

    def __init__(self, statement: Select[Any]) -> None:
        types = parameter_types(statement)
        rows = parameter_rows_cte(types)
        columns = (rows.c.number, *statement.selected_columns)
        shared = bind_to_rows(statement.with_only_columns(*columns), rows)
        super().__init__(statement, types, shared, execute_for_rows)


class BatchedInQuery:
    """Selects of the rows in which a column has one of several values. Requests share those for few values."""

    def __init__(self, statement: Select[Any], column: Column[Any]) -> None:
        name, *_ = _VALUE_PARAMETERS
        single = statement.where(column == bindparam(name))
        self._single_value_query = (
            BatchedJoin(single) if parameter_types(statement) else BatchedLookup(statement, {name: column})
        )
        self._few_values_query = BatchedJoin(_where_in(statement, column, _VALUE_PARAMETERS))
        self._many_values_select = statement.where(column.in_(bindparam("values", expanding=True)))

    def statement_for(self, values: Collection[Any]) -> tuple[CompiledStatement | Select[Any], Values]:
        """The statement for these values, of which there is at least one, and its parameters."""
        keys = list(values)
        if len(keys) == 1:
            return self._single_value_query, {_VALUE_PARAMETERS[0]: keys[0]}
        return (
            (self._many_values_select, {"values": keys})
            if len(keys) > len(_VALUE_PARAMETERS)
            else (self._few_values_query, _pad_parameters(keys, _VALUE_PARAMETERS))
        )
