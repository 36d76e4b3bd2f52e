"""Changes that are one statement in PostgreSQL and SQLite, and several in MariaDB.

MariaDB has neither UPDATE … RETURNING nor a conditional upsert. There the first statement locks the row until the
transaction ends, so that the others see the same state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Dialect,
    PrimaryKeyConstraint,
    Select,
    Table,
    UniqueConstraint,
    Update,
    and_,
    bindparam,
    literal,
    select,
    update,
)
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BinaryExpression

from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.mariadb import MARIADB, duplicate_key_name
from identity.plugins.sql.query_batching import (
    BatchKey,
    bind_to_rows,
    execute_batched,
    execute_for_rows,
    parameter_rows_cte,
    parameter_types,
)
from identity.plugins.sql.row_mapping import Row, Values
from identity.plugins.sql.settings import POSTGRESQL
from identity.plugins.sql.statements import DialectStatement, ExecutableStatement, Statement, StatementText
from identity.storage.errors import StorageUnavailable

#: Returns the new row's value of a column.
NewValue = Callable[[str], ColumnElement[Any]]

#: Maximum attempts when a conflicting row has disappeared before it can be changed.
_MAX_TRIES = 3


class UpdateReturning(DialectStatement):
    """An update of one row, by key and conditions, that returns the changed row."""

    def __init__(self, change: Update, *columns: ColumnElement[Any]) -> None:
        self._update = change
        self._columns = columns

    def compile(self, dialect: Dialect) -> ExecutableStatement:
        if dialect.name != MARIADB:
            return StatementText.from_statement(self._update.returning(*self._columns), dialect)
        conditions: Any = self._update.whereclause
        key = [clause for clause in conditions.clauses if _is_primary_key_condition(clause)]
        return _UpdateThenSelect(
            StatementText.from_statement(self._update, dialect),
            StatementText.from_statement(select(*self._columns).where(*key), dialect),
        )


def _is_primary_key_condition(condition: ColumnElement[bool]) -> bool:
    return (
        isinstance(condition, BinaryExpression)
        and condition.operator is operators.eq
        and isinstance(condition.left, Column)
        and condition.left.primary_key
    )


class UpdateWithInserts(DialectStatement):
    """A change of one row, and inserts that depend on it; without a change the rows are inserted in any case.

    The change is an update, or an insert that does nothing if the key exists. It returns ``returning``, or some row.
    Parameters are those of the update and, by the name of each table, the values of the new row. On PostgreSQL all
    is one statement, which greenlets share that are ready at the same time (``query_batching``) and have different
    values of the parameter ``key``.
    """

    def __init__(
        self, change: "Update | Upsert | None", *tables: Table, key: str, returning: Sequence[ColumnElement[Any]] = ()
    ) -> None:
        self._change = change
        self._tables = tables
        self._returning = tuple(returning)
        self._batch_key = key
        self._update_returning = (
            UpdateReturning(change, *returning) if isinstance(change, Update) and returning else None
        )
        self._parameters = parameter_types(change) if isinstance(change, Update) else {}
        for table in (*((change.table,) if isinstance(change, Upsert) else ()), *tables):
            self._parameters |= {f"{table.name}_{name}": table.c[name].type for name in _column_names(table)}
        # Created here: an update loses its RETURNING clause once it was compiled.
        self._select, self._batch_select = (
            self._build_statement(None),
            self._build_statement(parameter_rows_cte(self._parameters)),
        )

    def compile(self, dialect: Dialect) -> ExecutableStatement:
        return self._single_statement(dialect) if dialect.name == POSTGRESQL else self._statement_sequence(dialect)

    def _single_statement(self, dialect: Dialect) -> ExecutableStatement:
        nested = tuple(table.name for table in self._tables)
        if isinstance(self._change, Upsert):
            nested += (self._change.table.name,)
        return _InsertInSameStatement(
            StatementText.from_statement(self._select, dialect),
            StatementText.from_statement(self._batch_select, dialect),
            nested,
            self._batch_key,
        )

    def _build_statement(self, parameter_rows: CTE | None) -> Select[Any]:
        """The single statement: with parameters, or for each of ``parameter_rows``, whose number it returns first."""

        def insert_columns(table: Table) -> list[ColumnElement[Any]]:
            names = [f"{table.name}_{name}" for name in _column_names(table)]
            return [
                bindparam(name, type_=self._parameters[name]) if parameter_rows is None else parameter_rows.c[name]
                for name in names
            ]

        change: Any = self._change
        source: Any = parameter_rows
        statement = select(literal(1).label("changed") if parameter_rows is None else parameter_rows.c.number)
        if isinstance(change, Upsert):
            added: Any = insert(change.table).from_select(
                _column_names(change.table), select(*insert_columns(change.table)), False
            )
            changed = (
                added.on_conflict_do_nothing(index_elements=change.index_elements)
                .returning(*change.index_elements)
                .cte("changed")
            )
            source = changed
            if parameter_rows is not None:
                same = (
                    parameter_rows.c[f"{change.table.name}_{column.key}"] == changed.c[column.key]
                    for column in change.index_elements
                )
                source = changed.join(parameter_rows, and_(*same))
        elif change is not None:
            if parameter_rows is not None:
                change = bind_to_rows(change, parameter_rows)
            first = (literal(1).label("changed"),) if parameter_rows is None else (parameter_rows.c.number,)
            changed = change.returning(*first, *self._returning).cte("changed")
            source = (
                changed
                if parameter_rows is None
                else changed.join(parameter_rows, parameter_rows.c.number == changed.c.number)
            )
            statement = select(
                *(
                    item
                    for item in changed.c
                    if parameter_rows is not None or item.key != "changed" or not self._returning
                )
            )
        if source is not None and (parameter_rows is None or not isinstance(change, Update)):
            statement = statement.select_from(source)
        for table in self._tables:
            rows = select(*insert_columns(table))
            added = plain_insert(table).from_select(
                _column_names(table), rows if source is None else rows.select_from(source), include_defaults=False
            )
            statement = statement.add_cte(added.cte(f"new_{table.name}"))
        return statement

    def _statement_sequence(self, dialect: Dialect) -> ExecutableStatement:
        returned = None if self._update_returning is None else self._update_returning.compile(dialect)
        added = {table.name: StatementText.from_statement(plain_insert(table), dialect) for table in self._tables}
        change = self._change
        if isinstance(change, Upsert):
            return _InsertAfterUpdate(change.compile(dialect), None, added, change.table.name)
        return _InsertAfterUpdate(
            None if change is None else StatementText.from_statement(change, dialect), returned, added
        )


class Upsert(DialectStatement):
    """An insert, or an update of the existing row to ``changed`` if it matches ``where``. Without ``changed`` the row
    stays. With ``returning`` it returns the resulting row."""

    def __init__(
        self,
        table: Table,
        columns: Sequence[Column[Any]],
        assignments: Callable[[NewValue], Mapping[Column[Any], Any]] | None = None,
        *,
        where: ColumnElement[bool] | None = None,
        returning: Sequence[ColumnElement[Any]] = (),
    ) -> None:
        self.table = table
        self.index_elements = tuple(columns)
        self._assignments = assignments
        self._where = where
        self._returning = tuple(returning)

    def compile(self, dialect: Dialect) -> ExecutableStatement:
        return self._statement_sequence(dialect) if dialect.name == MARIADB else self._single_statement(dialect)

    def _single_statement(self, dialect: Dialect) -> ExecutableStatement:
        new = insert(self.table).inline()
        if self._assignments is None:
            new = new.on_conflict_do_nothing(index_elements=self.index_elements)
        else:
            changed = self._assignments(lambda name: new.excluded[name])
            new = new.on_conflict_do_update(index_elements=self.index_elements, set_=dict(changed), where=self._where)
        statement: Statement = new.returning(*self._returning) if self._returning else new
        return StatementText.from_statement(statement, dialect, columns=_column_names(self.table))

    def _statement_sequence(self, dialect: Dialect) -> ExecutableStatement:
        added = StatementText.from_statement(
            plain_insert(self.table).inline(), dialect, columns=_column_names(self.table)
        )
        this = and_(*(column == _new_value_parameter(column) for column in self.index_elements))
        rule = _unique_constraint_name(self.table, self.index_elements)
        if self._assignments is None:
            return _InsertUnlessDuplicate(added, rule)
        change = (
            update(self.table)
            .where(this)
            .values(self._assignments(lambda name: _new_value_parameter(self.table.c[name])))
        )
        return _LockThenUpdate(
            added,
            rule,
            StatementText.from_statement(
                select(literal(1)).select_from(self.table).where(this).with_for_update(), dialect
            ),
            StatementText.from_statement(change if self._where is None else change.where(self._where), dialect),
            StatementText.from_statement(select(*self._returning).where(this), dialect) if self._returning else None,
        )


def _column_names(table: Table) -> list[str]:
    """The columns set in a new row."""
    return [column.key for column in table.c if column.identity is None]


def _new_value_parameter(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return bindparam(f"new_{column.key}", type_=column.type)


def _unique_constraint_name(table: Table, columns: Sequence[Column[Any]]) -> str:
    """MariaDB's name of the unique constraint on these columns."""
    for rule in table.constraints:
        if isinstance(rule, (PrimaryKeyConstraint, UniqueConstraint)) and list(rule.columns) == list(columns):
            return "PRIMARY" if isinstance(rule, PrimaryKeyConstraint) else str(rule.name)
    raise LookupError(columns)


@dataclass(frozen=True, slots=True)
class _UpdateThenSelect(ExecutableStatement):
    """The update locks the row, so that it cannot change before it is read."""

    update: StatementText
    select: StatementText

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        return self.select.first(connection, parameters) if self.update.execute(connection, parameters) else None

    def execute(self, connection: DatabaseConnection, parameters: Values) -> int:
        return self.update.execute(connection, parameters)


@dataclass(frozen=True, slots=True)
class _InsertInSameStatement(ExecutableStatement):
    """A single statement; parameters of new rows are prefixed with their table names."""

    text: StatementText
    batch_text: StatementText
    tables: tuple[str, ...]
    batch_key: str

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        return self.text.first(connection, self._flatten_parameters(parameters))

    def first_and_commit(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        flat = self._flatten_parameters(parameters)
        shared, alone = partial(self._execute_batch, connection), partial(self._execute_single, connection, flat)
        rows = execute_batched(
            self.batch_text.sql, (flat[self.batch_key],), flat, connection, shared, alone, writes=True
        )
        return rows[0] if rows else None

    def _execute_batch(
        self, connection: DatabaseConnection, parameters: Mapping[BatchKey, Values]
    ) -> Mapping[BatchKey, Sequence[Row]]:
        with connection.autocommit():
            return execute_for_rows(self.batch_text, connection, parameters)

    def _execute_single(self, connection: DatabaseConnection, flat: Values) -> Sequence[Row]:
        with connection.autocommit():
            return self.text.all(connection, flat)

    def _flatten_parameters(self, parameters: Values) -> Values:
        flat = dict(parameters)
        for table in self.tables:
            flat |= {f"{table}_{name}": value for name, value in flat.pop(table).items()}
        return flat


@dataclass(frozen=True, slots=True)
class _InsertAfterUpdate(ExecutableStatement):
    """The row is changed first, which decides whether to insert."""

    update: ExecutableStatement | None
    update_returning: ExecutableStatement | None
    inserts: Mapping[str, StatementText]
    #: The changed table, if its parameters are those of a new row.
    upsert_table: str = ""

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        row: Row | None = (1,)
        if self.update_returning is not None:
            row = self.update_returning.first(connection, self._update_parameters(parameters))
        elif self.update is not None and not self.update.execute(connection, self._update_parameters(parameters)):
            row = None
        if row is not None:
            for table, text in self.inserts.items():
                text.execute(connection, parameters[table])
        return row

    def _update_parameters(self, parameters: Values) -> Values:
        if self.upsert_table:
            return parameters[self.upsert_table]  # type: ignore[no-any-return]
        return {name: value for name, value in parameters.items() if name not in self.inserts}


@dataclass(frozen=True, slots=True)
class _InsertUnlessDuplicate(ExecutableStatement):
    """Waits for concurrent inserts of the same row. INSERT IGNORE would ignore broken references, too."""

    insert: StatementText
    constraint: str

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        self.execute(connection, parameters)
        return None

    def execute(self, connection: DatabaseConnection, parameters: Values) -> int:
        return int(_insert_unless_duplicate(connection, self.insert, self.constraint, parameters))


@dataclass(frozen=True, slots=True)
class _LockThenUpdate(ExecutableStatement):
    """Locks the row if it exists, then updates it; or inserts it, unless a concurrent insert was faster."""

    insert: StatementText
    constraint: str
    lock: StatementText
    update: StatementText
    select: StatementText | None

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        if not self.execute(connection, parameters) or self.select is None:
            return None
        return self.select.first(connection, _with_new_values(parameters))

    def execute(self, connection: DatabaseConnection, parameters: Values) -> int:
        values = _with_new_values(parameters)
        for _ in range(_MAX_TRIES):
            if self.lock.first(connection, values) is not None:
                return self.update.execute(connection, values)
            if _insert_unless_duplicate(connection, self.insert, self.constraint, parameters):
                return 1
        raise StorageUnavailable("The row comes and goes.")


def _with_new_values(parameters: Values) -> Values:
    return {**parameters, **{f"new_{name}": value for name, value in parameters.items()}}


def _insert_unless_duplicate(
    connection: DatabaseConnection, insert_text: StatementText, constraint: str, parameters: Values
) -> bool:
    """False if a row with the same values of this unique constraint exists."""
    try:
        insert_text.execute(connection, parameters)
    except DBAPIError as error:
        if duplicate_key_name(error) != constraint:
            raise
        return False
    return True
