"""Base class of SQL stores: running statements, versioned updates."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Insert, Select, Table, Update, bindparam, or_, select, update
from sqlalchemy.sql.base import Executable

from identity.plugins.sql.column_codecs import seconds_from_datetime
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.errors import (
    DATABASE_ERRORS,
    TransactionConflict,
    UndecodableText,
    UnstorableText,
    translate_error,
)
from identity.plugins.sql.row_mapping import Row, Values, skip_unreadable
from identity.plugins.sql.statements import CompiledStatement
from identity.storage.errors import RowNotFound, StaleRow

ValueT = TypeVar("ValueT")


class SqlStore:
    """Runs statements on the connection of one transaction or read session."""

    __slots__ = ("_connection", "_core")

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection
        self._core = connection.core

    def _fetch_one(self, statement: Executable | CompiledStatement, parameters: Values | None = None) -> Row | None:
        try:
            if isinstance(statement, CompiledStatement):
                return statement.first(self._connection, parameters or {})
            return self._core.execute(statement, parameters).first()
        except DATABASE_ERRORS as error:
            answer = translate_error(error)
            if isinstance(answer, UnstorableText):
                return None
            raise answer from error

    def _fetch_value(
        self,
        reader: Callable[[Row], ValueT],
        statement: Executable | CompiledStatement,
        parameters: Values | None = None,
    ) -> ValueT | None:
        row = self._fetch_one(statement, parameters)
        return None if row is None else reader(row)

    def _fetch_values(
        self,
        reader: Callable[[Row], ValueT],
        statement: Executable | CompiledStatement,
        parameters: Values | None = None,
    ) -> tuple[ValueT, ...]:
        """The values of the readable rows."""
        return tuple(skip_unreadable(reader, self._fetch_all(statement, parameters)))

    def _fetch_all(self, statement: Executable | CompiledStatement, parameters: Values | None = None) -> Sequence[Row]:
        try:
            return self._execute_select(statement, parameters)
        except DATABASE_ERRORS as error:
            answer = translate_error(error)
            if isinstance(answer, UndecodableText):
                # SQLite can hold bytes that are not UTF-8: they are returned as bytes, which the row's reader detects.
                self._connection.driver.text_factory = _text_or_bytes
                return self._execute_select(statement, parameters)
            if isinstance(answer, UnstorableText):
                return ()
            raise answer from error

    def _execute_select(self, statement: Executable | CompiledStatement, parameters: Values | None) -> Sequence[Row]:
        if isinstance(statement, CompiledStatement):
            return statement.all(self._connection, parameters or {})
        return self._core.execute(statement, parameters).all()

    def _execute(self, statement: Executable | CompiledStatement, parameters: Values | None = None) -> int:
        """Returns the number of rows changed."""
        try:
            if isinstance(statement, CompiledStatement):
                return statement.execute(self._connection, parameters or {})
            return self._core.execute(statement, parameters).rowcount
        except DATABASE_ERRORS as error:
            raise translate_error(error) from error

    def _insert_rows(self, statement: Insert, rows: Sequence[Values]) -> None:
        try:
            self._core.execute(statement, rows)
        except DATABASE_ERRORS as error:
            raise translate_error(error) from error

    def _execute_in_savepoint(self, statement: Executable | CompiledStatement, parameters: Values | None = None) -> int:
        """Like ``_execute``, for a statement that may violate a constraint: the transaction can continue afterwards."""
        with self._savepoint():
            return self._execute(statement, parameters)

    def _execute_update_with_inserts(
        self, statement: CompiledStatement, parameters: Values, *, is_last_write: bool
    ) -> Row | None:
        """The first row of an ``UpdateWithInserts``. The last statement of a transaction may be committed with it,
        unless other participants vote on the commit."""
        try:
            execute = (
                statement.first_and_commit if is_last_write and self._connection.commits_alone else statement.first
            )
            return execute(self._connection, parameters)
        except DATABASE_ERRORS as error:
            raise translate_error(error) from error

    def _insert_all(self, statement: Insert, rows: Sequence[Values]) -> None:
        """Insert rows, all or none: the transaction can continue after an error."""
        if not rows:
            return
        self._execute_raw("SAVEPOINT all_or_none")
        try:
            self._core.execute(statement, rows)
        except DATABASE_ERRORS as error:
            answer = translate_error(error)
            if not isinstance(answer, TransactionConflict):
                self._execute_raw("ROLLBACK TO SAVEPOINT all_or_none")
            raise answer from error
        self._execute_raw("RELEASE SAVEPOINT all_or_none")

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        """Undo the block after an error, so that the transaction can continue. PostgreSQL refuses everything after a
        failed statement, hence the savepoint; SQLite and MariaDB undo only that statement."""
        if self._connection.dialect.name != "postgresql":
            yield
            return
        if not self._connection.in_transaction:
            # Nothing was written before: undoing everything undoes just this.
            try:
                yield
            except BaseException:
                self._connection.roll_back()
                raise
            return
        # Sent directly: SQLAlchemy's savepoints cost more than the savepoint itself.
        self._execute_raw("SAVEPOINT refusable")
        try:
            yield
        except BaseException:
            self._execute_raw("ROLLBACK TO SAVEPOINT refusable")
            raise
        self._execute_raw("RELEASE SAVEPOINT refusable")

    def _execute_raw(self, sql: str) -> None:
        try:
            self._connection.execute_raw(sql)
        except DATABASE_ERRORS as error:
            raise translate_error(error) from error

    def _advance_timestamps(self, statement: Executable, uses: Mapping[str, datetime]) -> None:
        """Run an update made by ``advance_timestamp`` for rows by id, always in the same order, to avoid deadlocks."""
        for id_, at in sorted(uses.items()):
            self._execute(statement, {"row": id_, "at": seconds_from_datetime(at)})

    def _fetch_values_by_id(
        self,
        statement: Select[Any],
        column: ColumnElement[Any],
        ids: Collection[str] | Collection[bytes],
        reader: Callable[[Row], ValueT],
    ) -> tuple[ValueT, ...]:
        """The values of the readable rows with one of these ids in the column; no query for none."""
        return self._fetch_values(reader, statement.where(column.in_(list(ids)))) if ids else ()

    def _execute_for_one(self, statement: Executable) -> None:
        """Change one row. Raises RowNotFound if there is none."""
        if not self._execute(statement):
            raise RowNotFound

    def _update_versioned(self, statement: Update, values: Values) -> None:
        """Run an update made by ``versioned_update``. Raises StaleRow or RowNotFound."""
        key = values.pop("id")
        if self._execute_in_savepoint(statement, {**values, "row_id": key, "previous": values["version"] - 1}):
            return
        ids = statement.table.c.id
        if self._fetch_one(select(ids).where(ids == key)) is None:
            raise RowNotFound
        raise StaleRow


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def versioned_update(table: Table) -> Update:
    """An update of one row that has the previous version; run it with ``SqlStore._update_versioned``."""
    return update(table).where(table.c.id == bindparam("row_id"), table.c.version == bindparam("previous"))


def advance_timestamp(column: ColumnElement[Any]) -> Update:
    """An update of one row, the parameter ``row``, that sets a timestamp to ``at`` unless it would move back."""
    table = column.table
    at = bindparam("at", type_=column.type)
    return update(table).where(table.c.id == bindparam("row"), or_(column.is_(None), column < at)).values({column: at})


def upsert(
    table: Table,
    *,
    index_elements: Sequence[Column[Any]],
    update_columns: Iterable[ColumnElement[Any]],
    where: ColumnElement[bool] | None = None,
) -> CompiledStatement:
    """An insert, or an update of columns of the existing row if it matches ``where``."""
    columns: list[Any] = list(update_columns)
    return CompiledStatement(
        Upsert(table, index_elements, lambda new: {column: new(column.key) for column in columns}, where=where)
    )
