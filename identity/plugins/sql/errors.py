"""Database errors as storage errors: no exception of SQLAlchemy leaves this package."""

import logging
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ssl import SSLError

from sqlalchemy import Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError
from transaction.interfaces import TransientError

from identity.plugins.sql import tables
from identity.plugins.sql.mariadb import CANNOT_CONNECT, duplicate_key_name
from identity.plugins.sql.migrations import MIGRATE_HINT
from identity.storage.errors import DuplicateValue, RowNotFound, StorageError, StorageUnavailable

log = logging.getLogger(__name__)

#: The setting with the server's URL.
URL_SETTING = "identity.plugin.sql.url"
STANDBY_URL_SETTING = "identity.plugin.sql.standby_url"

_NO_RESPONSE_MESSAGE = "The database does not answer."
_READ_ONLY_MESSAGE = "This storage is for reading alone, or the database is read-only."
_TOO_MANY_CONNECTIONS_MESSAGE = (
    "The database has no connection left: lower database_connections, or raise max_connections."
)
_INSERT = re.compile(r"INSERT INTO `?(\w+)")
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (.+)\Z")
_POSTGRESQL: dict[str, Callable[[], StorageError]] = {
    "23503": RowNotFound,  # foreign key violation
    "42P01": lambda: StorageUnavailable(f"The database lacks a table. {MIGRATE_HINT}"),
    "42703": lambda: StorageUnavailable(f"The database lacks a column. {MIGRATE_HINT}"),
    "25006": lambda: StorageUnavailable(_READ_ONLY_MESSAGE),
    "25P01": lambda: StorageUnavailable(_READ_ONLY_MESSAGE),  # savepoint outside any transaction
    "53100": lambda: StorageUnavailable("The database's disk is full."),
    "53300": lambda: TooManyConnections(_TOO_MANY_CONNECTIONS_MESSAGE),
    "55P03": lambda: StorageUnavailable("Another transaction holds the row for too long (lock_timeout)."),
    "57014": lambda: StorageUnavailable("The database took too long (statement_timeout)."),
}
_MARIADB: dict[object, Callable[[], StorageError]] = {
    1452: RowNotFound,  # reference to a missing row
    1366: lambda: UnstorableText("No row can hold this text."),
    1406: lambda: UnstorableText("No row can hold this text."),
    1146: lambda: StorageUnavailable(f"The database lacks a table. {MIGRATE_HINT}"),
    1054: lambda: StorageUnavailable(f"The database lacks a column. {MIGRATE_HINT}"),
    1792: lambda: StorageUnavailable(_READ_ONLY_MESSAGE),
    1290: lambda: StorageUnavailable(_READ_ONLY_MESSAGE),
    1021: lambda: StorageUnavailable("The database's disk is full."),
    1114: lambda: StorageUnavailable("The database's disk is full."),
    1040: lambda: TooManyConnections(_TOO_MANY_CONNECTIONS_MESSAGE),
    1203: lambda: TooManyConnections(_TOO_MANY_CONNECTIONS_MESSAGE),
    1226: lambda: TooManyConnections(_TOO_MANY_CONNECTIONS_MESSAGE),
    1205: lambda: TransactionConflict("Another transaction holds the row for too long (lock_timeout)."),
    1213: lambda: TransactionConflict("Another transaction was in the way."),
    1020: lambda: TransactionConflict("Another transaction was in the way."),
    1969: lambda: StorageUnavailable("The database took too long (statement_timeout)."),
    1047: lambda: StorageUnavailable("The database's node is not part of its cluster."),
}
_SQLITE = (
    ("no such table", f"The database lacks a table. {MIGRATE_HINT}"),
    ("no such column", f"The database lacks a column. {MIGRATE_HINT}"),
    ("locked", "The database is locked by another writer for too long (busy_timeout)."),
    ("full", "The database's disk is full."),
    ("readonly", _READ_ONLY_MESSAGE),
    ("not a database", "The file that identity.plugin.sql.url names is not an SQLite database."),
    ("malformed", "The database file is damaged: restore it from a backup."),
    ("unable to open", "The file that identity.plugin.sql.url names cannot be opened: may we, in its folder too?"),
)

#: Reasons for a failed connection, with the setting that names the server.
_UNKNOWN_HOST = "The database's host is not known: look at its name in {url}."
_CONNECTION_REFUSED_MESSAGE = (
    "The database does not answer: nobody listens at the host and port, or the socket, of {url}."
)
_TIMEOUT_MESSAGE = (
    "The database does not answer in time: are host and port of {url} right, does a firewall stand between?"
)
_WRONG_CREDENTIALS_MESSAGE = (
    "The database refuses the user or the password: look at {url} and identity.plugin.sql.password_file."
)
_PASSWORD_NEEDED_MESSAGE = (
    "The database wants a password: name a file that holds it in identity.plugin.sql.password_file."  # noqa: S105
)
_USER_FORBIDDEN_MESSAGE = (
    "The database does not let the user of {url} in: look at the name, and at what the server allows it."
)
_NO_DATABASE = "The server has no database of that name: look at the end of {url}, or have the database made."
_NO_TLS = "The database and we do not agree on TLS: look at the words behind the ? in {url}, and at its certificate."
_NOT_OPENED = "No connection to the database can be opened: look at {url}, also behind its ? if there is one."

#: How messages of libpq or psycopg about failed connections begin.
_NOT_CONNECTED = re.compile("connection (failed|is bad|timeout)|failed to resolve host|invalid connection option")
#: The server's error codes are lost then. Messages in a language other than English become _NOT_OPENED.
_POSTGRESQL_CONNECTING = (
    ("failed to resolve host", _UNKNOWN_HOST),
    ("password authentication failed", _WRONG_CREDENTIALS_MESSAGE),
    ("no password supplied", _PASSWORD_NEEDED_MESSAGE),
    ("too many connections", _TOO_MANY_CONNECTIONS_MESSAGE),
    ("too many clients", _TOO_MANY_CONNECTIONS_MESSAGE),
    ("connection slots", _TOO_MANY_CONNECTIONS_MESSAGE),
    ("no more connections allowed", _TOO_MANY_CONNECTIONS_MESSAGE),
    ("the database system is ", _NO_RESPONSE_MESSAGE),
    ('database "" does not exist', _NO_DATABASE),
    ('role "" ', _USER_FORBIDDEN_MESSAGE),
    ("pg_hba.conf", _USER_FORBIDDEN_MESSAGE),
    ("permission denied", _USER_FORBIDDEN_MESSAGE),
    ("authentication failed", _USER_FORBIDDEN_MESSAGE),
    ("SSL", _NO_TLS),
    ("certificate", _NO_TLS),
    ("Connection refused", _CONNECTION_REFUSED_MESSAGE),
    ("No such file or directory", _CONNECTION_REFUSED_MESSAGE),
    ("timeout expired", _TIMEOUT_MESSAGE),
    ("timed out", _TIMEOUT_MESSAGE),
)
_MARIADB_CONNECTING: dict[object, str] = {
    1045: _WRONG_CREDENTIALS_MESSAGE,
    1698: _WRONG_CREDENTIALS_MESSAGE,
    1044: _USER_FORBIDDEN_MESSAGE,
    1130: _USER_FORBIDDEN_MESSAGE,
    1049: _NO_DATABASE,
    2026: _NO_TLS,
}
_QUOTED = re.compile('"[^"]*"')


class TransactionConflict(StorageUnavailable, TransientError):  # type: ignore[misc]
    """Conflict with another transaction (deadlock, serialization failure): retry."""


class TooManyConnections(StorageUnavailable):
    """All connections that the server allows are in use."""


class UnstorableText(RowNotFound):
    """A text that the database cannot store (NUL, a lone surrogate), so no row can have it."""


class UndecodableText(StorageUnavailable):
    """A text column of SQLite holds invalid UTF-8."""


def translate_error(error: BaseException, url: str = URL_SETTING) -> StorageError:
    """The storage error, without host, user or SQL; ``url`` is the setting that names the server."""
    if isinstance(error, (DataError, UnicodeEncodeError)):
        return UnstorableText("No row can hold this text.")
    original = error.orig if isinstance(error, DBAPIError) else error
    if type(original).__module__.startswith("pymysql"):
        return _translate_mariadb_error(error, original, url)
    state = getattr(original, "sqlstate", None)
    if state is not None:
        return _translate_postgresql_error(original, state)
    if type(original).__module__ == "sqlite3":
        return _translate_sqlite_error(str(original))
    sentence = _connect_failure_reason(str(original))
    return (
        TooManyConnections(sentence)
        if sentence == _TOO_MANY_CONNECTIONS_MESSAGE
        else StorageUnavailable(sentence.format(url=url))
    )


@contextmanager
def translating() -> Iterator[None]:
    """Translate errors of SQLAlchemy or SQLite within the block into storage errors."""
    try:
        yield
    except (*DATABASE_ERRORS, sqlite3.Error) as error:
        raise translate_error(error) from error


def is_connection_limit_reached(error: BaseException) -> bool:
    """True if the server has no connection left at this moment."""
    return isinstance(error, DATABASE_ERRORS) and isinstance(translate_error(error), TooManyConnections)


def _connect_failure_reason(message: str) -> str:
    """Why psycopg could not connect; empty for another failure."""
    if not _NOT_CONNECTED.match(message):
        return _NO_RESPONSE_MESSAGE
    message = _QUOTED.sub('""', message)
    return next((sentence for part, sentence in _POSTGRESQL_CONNECTING if part in message), _NOT_OPENED)


def _translate_postgresql_error(original: object, state: str) -> StorageError:
    if state == "23505":
        return DuplicateValue(_FIELDS.get(original.diag.constraint_name, "id"))  # type: ignore[attr-defined]
    if state in ("40001", "40P01"):
        return TransactionConflict("Another transaction was in the way.")
    answer = _POSTGRESQL.get(state)
    return answer() if answer else StorageUnavailable(_NO_RESPONSE_MESSAGE)


def _translate_mariadb_error(error: BaseException, original: object, url: str) -> StorageError:
    if isinstance(error, DBAPIError):
        rule = duplicate_key_name(error)
        if rule is not None:
            inserted = _INSERT.match(error.statement or "")
            table = inserted[1] if inserted and rule == "PRIMARY" else ""
            return DuplicateValue(_FIELDS.get(f"pk_{table}" if table else rule, "id"))
    code = original.args[0] if isinstance(original, Exception) and original.args else None
    answer = _MARIADB.get(code)
    if answer:
        return answer()
    sentence = _MARIADB_CONNECTING.get(code, _NO_RESPONSE_MESSAGE)
    if code == CANNOT_CONNECT:
        sentence = _unreachable_reason(getattr(original, "original_exception", None))
    return StorageUnavailable(sentence.format(url=url))


def _unreachable_reason(cause: object) -> str:
    """Why the server is unreachable, by the operating system's error."""
    if isinstance(cause, socket.gaierror):
        return _UNKNOWN_HOST
    if isinstance(cause, TimeoutError):
        return _TIMEOUT_MESSAGE
    if isinstance(cause, SSLError):
        return _NO_TLS
    return (
        _CONNECTION_REFUSED_MESSAGE if isinstance(cause, (ConnectionRefusedError, FileNotFoundError)) else _NOT_OPENED
    )


def _translate_sqlite_error(message: str) -> StorageError:
    unique = _SQLITE_UNIQUE.match(message)
    if unique:
        return DuplicateValue(_FIELDS.get(unique[1], "id"))
    if message.startswith("FOREIGN KEY"):
        return RowNotFound()
    if message.startswith("Could not decode to UTF-8"):
        log.error("a row cannot be read: there is a text in it that is none")
        return UndecodableText("The database holds a text that is none.")
    sentence = next((sentence for part, sentence in _SQLITE if part in message), _NO_RESPONSE_MESSAGE)
    return StorageUnavailable(sentence)


def _unique_constraints() -> Iterator[tuple[str, str]]:
    """Each unique constraint by name (as in PostgreSQL's errors) and by columns (as in SQLite's), with its field."""
    for table in tables.metadata.tables.values():
        rules = [*table.constraints, *(index for index in table.indexes if index.unique)]
        for rule in rules:
            if not isinstance(rule, (PrimaryKeyConstraint, UniqueConstraint, Index)):
                continue
            columns = list(rule.columns)
            column_info = columns[0].info if isinstance(rule, PrimaryKeyConstraint) else rule.info
            field = column_info.get("field") or table.info.get("field") or columns[0].name
            yield str(rule.name), field
            yield ", ".join(f"{table.name}.{column.name}" for column in columns), field


_FIELDS = dict(_unique_constraints())

#: Exceptions of the driver layer while a statement runs.
DATABASE_ERRORS = (SQLAlchemyError, UnicodeEncodeError)
