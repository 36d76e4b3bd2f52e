"""Statements of hot paths: compiled once per database kind, then passed to its driver as text.

SQLAlchemy's overhead per execution exceeds the cost of such a statement.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import Delete, Dialect, Insert, Select, Update

from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.row_mapping import Row, Values

Statement = Select[Any] | Insert | Update | Delete


class ExecutableStatement(ABC):
    """A statement as it is sent. Each method raises SQLAlchemyError."""

    @abstractmethod
    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        """The first row, or None."""

    def all(self, connection: DatabaseConnection, parameters: Values) -> Sequence[Row]:
        """All rows; at most one unless a subclass returns more."""
        row = self.first(connection, parameters)
        return [] if row is None else [row]

    def execute(self, connection: DatabaseConnection, parameters: Values) -> int:
        """Returns the number of rows changed."""
        return len(self.all(connection, parameters))

    def first_and_commit(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        """The first row, of the last statement of a transaction: it may be committed with it."""
        return self.first(connection, parameters)


class DialectStatement(ABC):
    """A statement that differs between databases."""

    @abstractmethod
    def compile(self, dialect: Dialect) -> ExecutableStatement:
        """The equivalent statement for this kind of database."""


class CompiledStatement:
    """A statement and its compiled form for each kind of database."""

    def __init__(self, statement: Statement | DialectStatement) -> None:
        self._statement = statement
        self._executable_by_dialect: dict[str, ExecutableStatement] = {}

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        return self._executable_for(connection).first(connection, parameters)

    def all(self, connection: DatabaseConnection, parameters: Values) -> Sequence[Row]:
        return self._executable_for(connection).all(connection, parameters)

    def execute(self, connection: DatabaseConnection, parameters: Values) -> int:
        return self._executable_for(connection).execute(connection, parameters)

    def first_and_commit(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        return self._executable_for(connection).first_and_commit(connection, parameters)

    def _executable_for(self, connection: DatabaseConnection) -> ExecutableStatement:
        statements = self._executable_by_dialect.get(connection.dialect.name)
        if statements is None:
            statement, dialect = self._statement, connection.dialect
            if isinstance(statement, DialectStatement):
                statements = statement.compile(dialect)
            else:
                statements = StatementText.from_statement(statement, dialect)
            self._executable_by_dialect[dialect.name] = statements
        return statements


@dataclass(frozen=True, slots=True)
class StatementText(ExecutableStatement):
    """A statement in a driver's syntax. ``order_parameters`` orders positional parameters, ``constants`` are parameters
    of the statement itself, ``converters`` convert columns of a row."""

    sql: str
    order_parameters: Callable[[Values], tuple[Any, ...]] | None
    constants: Values
    converters: tuple[tuple[int, Callable[[Any], Any]], ...] = ()

    @classmethod
    def from_statement(
        cls, statement: Statement, dialect: Dialect, *, columns: Collection[str] | None = None
    ) -> "StatementText":
        """Compile the statement; an insert into these columns, if given."""
        compiled: Any = statement.compile(dialect=dialect, column_keys=None if columns is None else list(columns))
        converters = (
            (at, column.type.result_processor(dialect, None)) for at, column in enumerate(statement.exported_columns)
        )
        return cls(
            str(compiled),
            _positional_order(compiled.positiontup) if compiled.positional else None,
            {name: value for name, value in compiled.params.items() if value is not None},
            tuple((at, convert) for at, convert in converters if convert is not None),
        )

    def first(self, connection: DatabaseConnection, parameters: Values) -> Row | None:
        try:
            row: Row | None = connection.execute(self.sql, self.bind_parameters(parameters)).fetchone()
        except connection.driver_errors as error:
            raise connection.wrap_error(error) from error
        return row if row is None else self.convert_row(row)

    def all(self, connection: DatabaseConnection, parameters: Values) -> Sequence[Row]:
        try:
            rows = connection.execute(self.sql, self.bind_parameters(parameters)).fetchall()
        except connection.driver_errors as error:
            raise connection.wrap_error(error) from error
        return [self.convert_row(row) for row in rows] if self.converters else rows

    def execute(self, connection: DatabaseConnection, parameters: Values) -> int:
        try:
            changed: int = connection.execute(self.sql, self.bind_parameters(parameters)).rowcount
        except connection.driver_errors as error:
            raise connection.wrap_error(error) from error
        return changed

    def bind_parameters(self, parameters: Values) -> Values | tuple[Any, ...]:
        values = {**self.constants, **parameters} if self.constants else parameters
        return values if self.order_parameters is None else self.order_parameters(values)

    def convert_row(self, row: Row) -> Row:
        if not self.converters:
            return row
        values = list(row)
        for at, convert in self.converters:
            values[at] = convert(values[at])
        return values


def _positional_order(names: Sequence[str]) -> Callable[[Values], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
