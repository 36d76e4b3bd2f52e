"""What all stores share: running statements, converting values, versioned updates."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, wraps
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Select,
    Table,
    Update,
    bindparam,
    or_,
    select,
    update,
)
from sqlalchemy import Insert as PlainInsert
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable

from identity.plugins.sql.errors import FAILURES, Undecodable, Unstorable, translated
from identity.storage.errors import Missing, Stale, Unreadable

log = logging.getLogger(__name__)

Value = TypeVar("Value")
Values = dict[str, Any]
#: A row, whose values are taken by position.
Record = Sequence[Any]

#: SQLAlchemy counts the rows of inserts when told so.
_COUNTED = {"preserve_rowcount": True}


#: What making a value of a row raises if the row holds something else.
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, OSError, RecursionError)


def row_of(*columns: ColumnElement[Any]) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Decorates what makes a value of a row of these columns, the first of which is a table's own.

    Whatever it cannot read (another type than the column's, bad JSON, an unknown word) raises Unreadable, which is
    logged once for each row. Types are compared for the row as a whole: a good row costs a microsecond.
    """
    table: Any = getattr(columns[0], "table", None)
    keys = [(at, column) for at, column in enumerate(columns) if getattr(column, "primary_key", False)]
    types = [(column.type.python_type, getattr(column, "nullable", True)) for column in columns]
    shapes: set[tuple[type, ...]] = set()

    def fits(shape: tuple[type, ...]) -> bool:
        """True for types that the columns can have; remembered, since there are few."""
        pairs = zip(shape, types, strict=True)
        if all(is_ is wanted or (nullable and is_ is type(None)) for is_, (wanted, nullable) in pairs):
            shapes.add(shape)
            return True
        return False

    def decorated(of_row: Callable[..., Value]) -> Callable[..., Value]:
        @wraps(of_row)
        def read(*row: Any) -> Value:
            shape = tuple(map(type, row))
            try:
                if shape in shapes or fits(shape):
                    return of_row(*row)
            except _DAMAGE:
                pass
            id_ = " ".join(row[at].hex() if isinstance(row[at], bytes) else str(row[at]) for at, _ in keys)
            _alert(table.name, id_)
            raise Unreadable(table.name, id_)

        return read

    return decorated


@lru_cache(1024)
def _alert(table: str, id_: str) -> None:
    """Tell operators, once in a process."""
    log.error("a row cannot be read and is left out or refused: table %s, id %s", table, id_ or "unknown")


def readable(of_row: Callable[..., Value], rows: Iterable[Record]) -> Iterator[Value]:
    """What the rows hold, without those that cannot be read: for lists, of which one row is not to take the others."""
    for row in rows:
        with suppress(Unreadable):
            yield of_row(*row)


#: What can be prepared.
Statement = Select[Any] | PlainInsert | Update


class Prepared:
    """A statement of a hot path: compiled once for each kind of database, then given to its driver as text.

    What SQLAlchemy does around each execution costs more than such a statement itself.
    """

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._texts: dict[str, _Text] = {}

    def first(self, connection: Connection, parameters: Values) -> Record | None:
        """The first row, or None. Raises SQLAlchemyError."""
        text = self._text(connection)
        row: Record | None = _with_driver(connection, lambda driver: text.execute(driver, parameters).fetchone())
        return row if row is None else text.converted(row)

    def all(self, connection: Connection, parameters: Values) -> Sequence[Record]:
        """All rows. Raises SQLAlchemyError."""
        text = self._text(connection)
        rows = _with_driver(connection, lambda driver: text.execute(driver, parameters).fetchall())
        return [text.converted(row) for row in rows]

    def change(self, connection: Connection, parameters: Values) -> int:
        """How many rows it changed. Raises SQLAlchemyError."""
        text = self._text(connection)
        changed: int = _with_driver(connection, lambda driver: text.execute(driver, parameters).rowcount)
        return changed

    def _text(self, connection: Connection) -> "_Text":
        text = self._texts.get(connection.dialect.name)
        if text is None:
            text = self._texts[connection.dialect.name] = _Text.of(self._statement, connection.dialect)
        return text


def _with_driver(connection: Connection, step: Callable[[Any], Any]) -> Any:
    """What the step makes of the driver's connection. Raises SQLAlchemyError."""
    dialect = connection.dialect
    failures = dialect.loaded_dbapi.Error
    driver: Any = connection.connection.dbapi_connection
    try:
        return step(driver)
    except failures as error:
        # As SQLAlchemy does with its own statements: a dead connection is never used or put into the pool again.
        if dialect.is_disconnect(error, driver, None):
            connection.invalidate(error)
        raise DBAPIError.instance(None, None, error, failures, dialect=dialect) from error


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement as a driver wants it.

    ``names`` orders the parameters where they are not named, ``constants`` are those that the statement brings itself,
    ``converters`` tell which columns of a row are not yet what they should be.
    """

    sql: str
    names: tuple[str, ...] | None
    constants: Values
    converters: tuple[tuple[int, Callable[[Any], Any]], ...]

    @classmethod
    def of(cls, statement: Statement, dialect: Dialect) -> "_Text":
        compiled: Any = statement.compile(dialect=dialect)
        columns = enumerate(statement.exported_columns)
        converters = ((at, column.type.result_processor(dialect, None)) for at, column in columns)
        return cls(
            str(compiled),
            tuple(compiled.positiontup) if compiled.positional else None,
            {name: value for name, value in compiled.params.items() if value is not None},
            tuple((at, convert) for at, convert in converters if convert is not None),
        )

    def execute(self, driver: Any, parameters: Values) -> Any:
        return driver.execute(self.sql, self.given(parameters))

    def given(self, parameters: Values) -> Values | tuple[Any, ...]:
        given = {**self.constants, **parameters} if self.constants else parameters
        return given if self.names is None else tuple([given[name] for name in self.names])

    def converted(self, row: Record) -> Record:
        if not self.converters:
            return row
        values = list(row)
        for at, convert in self.converters:
            values[at] = convert(values[at])
        return values


class SqlStore:
    """Runs statements on the connection of one transaction (or one reading)."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _one(self, statement: Executable | Prepared, parameters: Values) -> Record | None:
        """The first row, or None."""
        try:
            if isinstance(statement, Prepared):
                return statement.first(self._connection, parameters)
            return self._connection.execute(statement, parameters).first()
        except FAILURES as error:
            answer = translated(error)
            if isinstance(answer, Unstorable):
                return None
            raise answer from error

    def _all(self, statement: Executable | Prepared, parameters: Values | None = None) -> Sequence[Record]:
        """All rows."""
        try:
            return self._fetch(statement, parameters)
        except FAILURES as error:
            answer = translated(error)
            if isinstance(answer, Undecodable):
                # SQLite holds bytes that are no text: as such they are seen by whatever reads the row.
                driver: Any = self._connection.connection.dbapi_connection
                driver.text_factory = _text_or_bytes
                return self._fetch(statement, parameters)
            if isinstance(answer, Unstorable):
                return ()
            raise answer from error

    def _fetch(self, statement: Executable | Prepared, parameters: Values | None) -> Sequence[Record]:
        if isinstance(statement, Prepared):
            return statement.all(self._connection, parameters or {})
        return self._connection.execute(statement, parameters).all()

    def _change(self, statement: Executable | Prepared, parameters: Values) -> int:
        """How many rows the statement changed."""
        try:
            if isinstance(statement, Prepared):
                return statement.change(self._connection, parameters)
            return self._connection.execute(statement, parameters).rowcount
        except FAILURES as error:
            raise translated(error) from error

    def _try(self, statement: Executable | Prepared, parameters: Values) -> int:
        """Like ``_change``, for what may break a rule: the transaction remains usable after the refusal."""
        with self._guarded():
            return self._change(statement, parameters)

    def _add_all(self, statement: PlainInsert, rows: Sequence[Values]) -> None:
        """Insert rows, all or none: the transaction remains usable after a refusal."""
        if not rows:
            return
        self._send("SAVEPOINT all_or_none")
        try:
            self._connection.execute(statement, rows)
        except FAILURES as error:
            self._send("ROLLBACK TO SAVEPOINT all_or_none")
            raise translated(error) from error
        self._send("RELEASE SAVEPOINT all_or_none")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Takes back what is refused within, so that the transaction remains usable.

        PostgreSQL refuses everything after a failed statement, hence the savepoint; SQLite takes back that statement
        alone.
        """
        if self._connection.dialect.name != "postgresql":
            yield
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
            _with_driver(self._connection, lambda driver: driver.execute(words))
        except FAILURES as error:
            raise translated(error) from error

    def _move_forward(self, statement: Executable, uses: Mapping[str, datetime]) -> None:
        """Run an update made by ``move_forward`` for rows by id, in the same order everywhere: nobody waits in a
        circle."""
        for id_, at in sorted(uses.items()):
            self._change(statement, {"row": id_, "at": seconds(at)})

    def _many(self, statement: Executable, ids: Collection[str], of_row: Callable[..., Value]) -> list[Value]:
        """What the readable rows hold that are found by ``ids``; for none nothing is asked."""
        return list(readable(of_row, self._all(statement, {"ids": list(ids)}))) if ids else []

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


def add_unless_there(table: Table, *unique: ColumnElement[Any]) -> Insert:
    """An insert that does nothing if these values are there already (SQLite understands PostgreSQL's words)."""
    return insert(table).inline().on_conflict_do_nothing(index_elements=unique).execution_options(**_COUNTED)


def upsert(
    table: Table,
    *,
    by: ColumnElement[Any] | tuple[ColumnElement[Any], ...],
    replacing: Iterable[ColumnElement[Any]],
    where: ColumnElement[bool] | None = None,
) -> Insert:
    """An insert that replaces columns of the row that is there already, if that fits ``where``."""
    new = insert(table)
    return new.on_conflict_do_update(
        index_elements=by if isinstance(by, tuple) else (by,),
        set_={column: new.excluded[str(column.key)] for column in replacing},
        where=where,
    ).execution_options(**_COUNTED)


# The same few rows are read again and again. What these texts and numbers mean never changes, so it is worked out
# once: a third of the time that reading a client or a token takes.
@lru_cache(4096)
def moment(stored: int) -> datetime:
    """The moment so many seconds after the epoch."""
    return datetime.fromtimestamp(stored, UTC)


def moment_or_none(stored: int | None) -> datetime | None:
    """Like ``moment``, where there may be none."""
    return None if stored is None else moment(stored)


def seconds(at: datetime) -> int:
    """The moment as it is stored."""
    return int(at.timestamp())


def seconds_or_none(at: datetime | None) -> int | None:
    """Like ``seconds``, where there may be none."""
    return None if at is None else int(at.timestamp())


def span_or_none(stored: int | None) -> timedelta | None:
    """A lifetime, where there is one."""
    return None if stored is None else timedelta(seconds=stored)


def listed(values: Iterable[str]) -> str:
    """A tuple as it is stored: JSON."""
    return json.dumps(list(values), ensure_ascii=False)


def sorted_list(values: frozenset[str]) -> str:
    """A set as it is stored: JSON, sorted so that equal sets are equal texts."""
    return json.dumps(sorted(values), ensure_ascii=False)


@lru_cache(1024)
def tuple_of(stored: str) -> tuple[str, ...]:
    """A tuple stored by ``listed``. Raises ValueError."""
    return tuple(_texts(stored))


@lru_cache(1024)
def set_of(stored: str) -> frozenset[str]:
    """A set stored by ``sorted_list``. Raises ValueError."""
    return frozenset(_texts(stored))


def _texts(stored: str) -> list[str]:
    values = json.loads(stored)
    if type(values) is not list or any(type(one) is not str for one in values):
        raise ValueError("not a list of texts")
    return values


def object_of(stored: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError."""
    members = json.loads(stored)
    if type(members) is not dict:
        raise ValueError("not an object")
    return members


def words(values: tuple[str, ...]) -> str:
    """Scope or audience as it is stored: words separated by spaces."""
    return " ".join(values)


@lru_cache(1024)
def words_of(stored: str) -> tuple[str, ...]:
    """Scope or audience stored by ``words``."""
    return tuple(stored.split(" ")) if stored else ()
