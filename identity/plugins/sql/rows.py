"""What all stores share: running statements, versioned updates."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Insert, Select, Table, Update, bindparam, or_, select, update
from sqlalchemy.sql.base import Executable

from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.dialect_statements import Upsert
from identity.plugins.sql.errors import FAILURES, Contended, Undecodable, Unstorable, translated
from identity.plugins.sql.mapping import Row, Values, readable
from identity.plugins.sql.statements import CompiledStatement
from identity.storage.errors import Missing, Stale

Value = TypeVar("Value")


class SqlStore:
    """Runs statements on the connection of one transaction (or one reading)."""

    __slots__ = ("_connection", "_core")

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection
        self._core = connection.core

    def _one(self, statement: Executable | CompiledStatement, parameters: Values) -> Row | None:
        """The first row, or None."""
        try:
            if isinstance(statement, CompiledStatement):
                return statement.first(self._connection, parameters)
            return self._core.execute(statement, parameters).first()
        except FAILURES as error:
            answer = translated(error)
            if isinstance(answer, Unstorable):
                return None
            raise answer from error

    def _find(
        self, of: Callable[[Row], Value], statement: Executable | CompiledStatement, parameters: Values
    ) -> Value | None:
        """What the first row holds, or None."""
        row = self._one(statement, parameters)
        return None if row is None else of(row)

    def _list(
        self, of: Callable[[Row], Value], statement: Executable | CompiledStatement, parameters: Values | None = None
    ) -> tuple[Value, ...]:
        """What the readable rows hold."""
        return tuple(readable(of, self._all(statement, parameters)))

    def _all(self, statement: Executable | CompiledStatement, parameters: Values | None = None) -> Sequence[Row]:
        """All rows."""
        try:
            return self._fetch(statement, parameters)
        except FAILURES as error:
            answer = translated(error)
            if isinstance(answer, Undecodable):
                # SQLite holds bytes that are no text: as such they are seen by whatever reads the row.
                self._connection.driver.text_factory = _text_or_bytes
                return self._fetch(statement, parameters)
            if isinstance(answer, Unstorable):
                return ()
            raise answer from error

    def _fetch(self, statement: Executable | CompiledStatement, parameters: Values | None) -> Sequence[Row]:
        if isinstance(statement, CompiledStatement):
            return statement.all(self._connection, parameters or {})
        return self._core.execute(statement, parameters).all()

    def _change(self, statement: Executable | CompiledStatement, parameters: Values) -> int:
        """How many rows the statement changed."""
        try:
            if isinstance(statement, CompiledStatement):
                return statement.change(self._connection, parameters)
            return self._core.execute(statement, parameters).rowcount
        except FAILURES as error:
            raise translated(error) from error

    def _try(self, statement: Executable | CompiledStatement, parameters: Values) -> int:
        """Like ``_change``, for what may break a rule: the transaction remains usable after the refusal."""
        with self._guarded():
            return self._change(statement, parameters)

    def _write(self, statement: CompiledStatement, parameters: Values, *, last: bool) -> Row | None:
        """The first row of a ``GuardedInsert``.

        The last statement of a transaction may be committed with it, unless others have a vote on the commit.
        """
        try:
            execute = statement.last if last and self._connection.commits_alone else statement.first
            return execute(self._connection, parameters)
        except FAILURES as error:
            raise translated(error) from error

    def _add_all(self, statement: Insert, rows: Sequence[Values]) -> None:
        """Insert rows, all or none: the transaction remains usable after a refusal."""
        if not rows:
            return
        self._send("SAVEPOINT all_or_none")
        try:
            self._core.execute(statement, rows)
        except FAILURES as error:
            answer = translated(error)
            if not isinstance(answer, Contended):
                self._send("ROLLBACK TO SAVEPOINT all_or_none")
            raise answer from error
        self._send("RELEASE SAVEPOINT all_or_none")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Takes back what is refused within, so that the transaction remains usable.

        PostgreSQL refuses everything after a failed statement, hence the savepoint; SQLite and MariaDB take back that
        statement alone.
        """
        if self._connection.dialect.name != "postgresql":
            yield
            return
        if not self._connection.in_transaction:
            # Nothing was written before: to take back everything is to take back this.
            try:
                yield
            except BaseException:
                self._connection.roll_back()
                raise
            return
        # Sent by hand: what SQLAlchemy does around a savepoint costs more than the savepoint itself.
        self._send("SAVEPOINT refusable")
        try:
            yield
        except BaseException:
            self._send("ROLLBACK TO SAVEPOINT refusable")
            raise
        self._send("RELEASE SAVEPOINT refusable")

    def _send(self, words: str) -> None:
        """Give words without parameters to the driver."""
        try:
            self._connection.send(words)
        except FAILURES as error:
            raise translated(error) from error

    def _move_forward(self, statement: Executable, uses: Mapping[str, datetime]) -> None:
        """Run an update made by ``move_forward`` for rows by id, in the same order everywhere: nobody waits in a
        circle."""
        for id_, at in sorted(uses.items()):
            self._change(statement, {"row": id_, "at": seconds(at)})

    def _many(self, statement: Executable, ids: Collection[str], of: Callable[[Row], Value]) -> tuple[Value, ...]:
        """What the readable rows hold that are found by ``ids``; for none nothing is asked."""
        return self._list(of, statement, {"ids": list(ids)}) if ids else ()

    def _touch_one(self, statement: Executable, parameters: Values) -> None:
        """Change one row; raises Missing if there is none."""
        if not self._change(statement, parameters):
            raise Missing

    def _replace(self, statement: Update, values: Values) -> None:
        """Run an update made by ``versioned``; raises Stale or Missing."""
        key = values.pop("id")
        if self._try(statement, {**values, "key": key, "previous": values["version"] - 1}):
            return
        ids = statement.table.c.id
        if self._one(select(ids).where(ids == bindparam("key")), {"key": key}) is None:
            raise Missing
        raise Stale


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def find_by_id(table: Table, columns: Iterable[ColumnElement[Any]]) -> Select[Any]:
    """A select of one row by its id, given as ``key``."""
    return select(*columns).where(table.c.id == bindparam("key"))


def find_many_by_id(table: Table, columns: Iterable[ColumnElement[Any]]) -> Select[Any]:
    """A select of the rows with these ids, given as ``ids``."""
    return select(*columns).where(table.c.id.in_(bindparam("ids", expanding=True)))


def versioned(table: Table) -> Update:
    """An update of one row that has the version before the new one; run it by ``SqlStore._replace``."""
    return update(table).where(table.c.id == bindparam("key"), table.c.version == bindparam("previous"))


def move_forward(column: ColumnElement[Any]) -> Update:
    """An update of one row, given as ``row``, that sets a moment to ``at`` unless it is there or past it already."""
    table = column.table
    at = bindparam("at", type_=column.type)
    return update(table).where(table.c.id == bindparam("row"), or_(column.is_(None), column < at)).values({column: at})


def add_unless_there(table: Table, *unique: Column[Any]) -> CompiledStatement:
    """An insert that does nothing if these values are there already."""
    return CompiledStatement(Upsert(table, unique))


def upsert(
    table: Table,
    *,
    by: Sequence[Column[Any]],
    replacing: Iterable[ColumnElement[Any]],
    where: ColumnElement[bool] | None = None,
) -> CompiledStatement:
    """An insert that replaces columns of the row that is there already, if that fits ``where``."""
    columns: list[Any] = list(replacing)
    return CompiledStatement(
        Upsert(table, by, lambda new: {column: new(column.key) for column in columns}, where=where)
    )
