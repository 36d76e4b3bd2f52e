"""What the database says, in the port's words: nothing of SQLAlchemy leaves this package."""

import logging
import re
from collections.abc import Callable, Iterator

from sqlalchemy import Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from transaction.interfaces import TransientError

from identity.plugins.sql import tables
from identity.plugins.sql.mariadb import duplicate_key
from identity.plugins.sql.migrations import MIGRATE
from identity.storage.errors import Duplicate, Missing, StorageError, Unavailable

log = logging.getLogger(__name__)

_READING = "This storage is for reading alone, or the database is read-only."
_INSERT = re.compile(r"INSERT INTO `?(\w+)")
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (.+)\Z")
_POSTGRESQL: dict[str, Callable[[], StorageError]] = {
    "23503": Missing,  # foreign key violation
    "42P01": lambda: Unavailable(f"The database lacks a table. {MIGRATE}"),
    "42703": lambda: Unavailable(f"The database lacks a column. {MIGRATE}"),
    "25006": lambda: Unavailable(_READING),
    "25P01": lambda: Unavailable(_READING),  # a savepoint outside any transaction
    "53100": lambda: Unavailable("The database's disk is full."),
    "53300": lambda: Unavailable("The database has no connection left: lower pool_size or raise max_connections."),
    "55P03": lambda: Unavailable("Another transaction holds the row for too long (lock_timeout)."),
    "57014": lambda: Unavailable("The database took too long (statement_timeout)."),
}
_MARIADB: dict[object, Callable[[], StorageError]] = {
    1452: Missing,  # a reference to a row that is not there
    1366: lambda: Unstorable("No row can hold this text."),
    1406: lambda: Unstorable("No row can hold this text."),
    1146: lambda: Unavailable(f"The database lacks a table. {MIGRATE}"),
    1054: lambda: Unavailable(f"The database lacks a column. {MIGRATE}"),
    1792: lambda: Unavailable(_READING),
    1290: lambda: Unavailable(_READING),
    1021: lambda: Unavailable("The database's disk is full."),
    1114: lambda: Unavailable("The database's disk is full."),
    1040: lambda: Unavailable("The database has no connection left: lower pool_size or raise max_connections."),
    1205: lambda: Contended("Another transaction holds the row for too long (lock_timeout)."),
    1213: lambda: Contended("Another transaction was in the way."),
    1020: lambda: Contended("Another transaction was in the way."),
    1969: lambda: Unavailable("The database took too long (statement_timeout)."),
    1047: lambda: Unavailable("The database's node is not part of its cluster."),
}
_SQLITE = (
    ("no such table", f"The database lacks a table. {MIGRATE}"),
    ("no such column", f"The database lacks a column. {MIGRATE}"),
    ("locked", "The database is locked by another writer for too long (busy_timeout)."),
    ("full", "The database's disk is full."),
    ("readonly", _READING),
    ("not a database", "The file is not an SQLite database."),
    ("malformed", "The database file is damaged: restore it from a backup."),
    ("unable to open", "The database file cannot be opened: check folder and permissions."),
)


class Contended(Unavailable, TransientError):  # type: ignore[misc]
    """Lost against another transaction (deadlock, serialization failure): worth another attempt."""


class Unstorable(Missing):
    """A text that the database cannot hold (NUL, a lone surrogate), so no row can have it."""


class Undecodable(Unavailable):
    """A stored text of SQLite is no text."""


def translated(error: BaseException) -> StorageError:
    """The storage error that tells what happened, without host, user or SQL."""
    if isinstance(error, PoolTimeout):
        return Unavailable("All database connections are busy.")
    if isinstance(error, (DataError, UnicodeEncodeError)):
        return Unstorable("No row can hold this text.")
    original = error.orig if isinstance(error, DBAPIError) else error
    if type(original).__module__.startswith("pymysql"):
        return _from_mariadb(error, original)
    state = getattr(original, "sqlstate", None)
    if state is not None:
        return _from_postgresql(original, state)
    if type(original).__module__ == "sqlite3":
        return _from_sqlite(str(original))
    return Unavailable("The database does not answer.")


def _from_postgresql(original: object, state: str) -> StorageError:
    if state == "23505":
        return Duplicate(_FIELDS.get(original.diag.constraint_name, "id"))  # type: ignore[attr-defined]
    if state in ("40001", "40P01"):
        return Contended("Another transaction was in the way.")
    answer = _POSTGRESQL.get(state)
    return answer() if answer else Unavailable("The database does not answer.")


def _from_mariadb(error: BaseException, original: object) -> StorageError:
    if isinstance(error, DBAPIError):
        rule = duplicate_key(error)
        if rule is not None:
            inserted = _INSERT.match(error.statement or "")
            table = inserted[1] if inserted and rule == "PRIMARY" else ""
            return Duplicate(_FIELDS.get(f"pk_{table}" if table else rule, "id"))
    code = original.args[0] if isinstance(original, Exception) and original.args else None
    answer = _MARIADB.get(code)
    return answer() if answer else Unavailable("The database does not answer.")


def _from_sqlite(message: str) -> StorageError:
    unique = _SQLITE_UNIQUE.match(message)
    if unique:
        return Duplicate(_FIELDS.get(unique[1], "id"))
    if message.startswith("FOREIGN KEY"):
        return Missing()
    if message.startswith("Could not decode to UTF-8"):
        log.error("a row cannot be read: there is a text in it that is none")
        return Undecodable("The database holds a text that is none.")
    sentence = next((sentence for part, sentence in _SQLITE if part in message), "The database does not answer.")
    return Unavailable(sentence)


def _unique_rules() -> Iterator[tuple[str, str]]:
    """Each unique rule, by its name (as PostgreSQL tells it) and by its columns (as SQLite does), with its field."""
    for table in tables.metadata.tables.values():
        rules = [*table.constraints, *(index for index in table.indexes if index.unique)]
        for rule in rules:
            if not isinstance(rule, (PrimaryKeyConstraint, UniqueConstraint, Index)):
                continue
            columns = list(rule.columns)
            own = columns[0].info if isinstance(rule, PrimaryKeyConstraint) else rule.info
            field = own.get("field") or table.info.get("field") or columns[0].name
            yield str(rule.name), field
            yield ", ".join(f"{table.name}.{column.name}" for column in columns), field


_FIELDS = dict(_unique_rules())

#: What the driver layer can raise while a statement runs.
FAILURES = (SQLAlchemyError, UnicodeEncodeError)
