"""What the database says, in the port's words: nothing of SQLAlchemy leaves this package."""

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
from identity.plugins.sql.mariadb import CANNOT_CONNECT, duplicate_key
from identity.plugins.sql.migrations import MIGRATE
from identity.storage.errors import Duplicate, Missing, StorageError, Unavailable

log = logging.getLogger(__name__)

#: The settings that name a server.
URL_SETTING = "identity.plugin.sql.url"
STANDBY_URL_SETTING = "identity.plugin.sql.standby_url"

_SILENT = "The database does not answer."
_READING = "This storage is for reading alone, or the database is read-only."
_NO_CONNECTION_LEFT = "The database has no connection left: lower database_connections, or raise max_connections."
_INSERT = re.compile(r"INSERT INTO `?(\w+)")
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (.+)\Z")
_POSTGRESQL: dict[str, Callable[[], StorageError]] = {
    "23503": Missing,  # foreign key violation
    "42P01": lambda: Unavailable(f"The database lacks a table. {MIGRATE}"),
    "42703": lambda: Unavailable(f"The database lacks a column. {MIGRATE}"),
    "25006": lambda: Unavailable(_READING),
    "25P01": lambda: Unavailable(_READING),  # a savepoint outside any transaction
    "53100": lambda: Unavailable("The database's disk is full."),
    "53300": lambda: NoConnectionLeft(_NO_CONNECTION_LEFT),
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
    1040: lambda: NoConnectionLeft(_NO_CONNECTION_LEFT),
    1203: lambda: NoConnectionLeft(_NO_CONNECTION_LEFT),
    1226: lambda: NoConnectionLeft(_NO_CONNECTION_LEFT),
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
    ("not a database", "The file that identity.plugin.sql.url names is not an SQLite database."),
    ("malformed", "The database file is damaged: restore it from a backup."),
    ("unable to open", "The file that identity.plugin.sql.url names cannot be opened: may we, in its folder too?"),
)

#: Why no connection was opened, by the setting that names the server.
_UNKNOWN_HOST = "The database's host is not known: look at its name in {url}."
_NOBODY = "The database does not answer: nobody listens at the host and port, or the socket, of {url}."
_NOT_IN_TIME = "The database does not answer in time: are host and port of {url} right, does a firewall stand between?"
_REFUSED = "The database refuses the user or the password: look at {url} and identity.plugin.sql.password_file."
_ASKS_FOR_IT = "The database wants a password: name a file that holds it in identity.plugin.sql.password_file."
_NOT_LET_IN = "The database does not let the user of {url} in: look at the name, and at what the server allows it."
_NO_DATABASE = "The server has no database of that name: look at the end of {url}, or have the database made."
_NO_TLS = "The database and we do not agree on TLS: look at the words behind the ? in {url}, and at its certificate."
_NOT_OPENED = "No connection to the database can be opened: look at {url}, also behind its ? if there is one."

#: How it begins where libpq or psycopg tell that they could not connect.
_NOT_CONNECTED = re.compile("connection (failed|is bad|timeout)|failed to resolve host|invalid connection option")
#: The server's codes are lost then. What it says in another language than English is told as _NOT_OPENED.
_POSTGRESQL_CONNECTING = (
    ("failed to resolve host", _UNKNOWN_HOST),
    ("password authentication failed", _REFUSED),
    ("no password supplied", _ASKS_FOR_IT),
    ("too many connections", _NO_CONNECTION_LEFT),
    ("too many clients", _NO_CONNECTION_LEFT),
    ("connection slots", _NO_CONNECTION_LEFT),
    ("no more connections allowed", _NO_CONNECTION_LEFT),
    ("the database system is ", _SILENT),
    ('database "" does not exist', _NO_DATABASE),
    ('role "" ', _NOT_LET_IN),
    ("pg_hba.conf", _NOT_LET_IN),
    ("permission denied", _NOT_LET_IN),
    ("authentication failed", _NOT_LET_IN),
    ("SSL", _NO_TLS),
    ("certificate", _NO_TLS),
    ("Connection refused", _NOBODY),
    ("No such file or directory", _NOBODY),
    ("timeout expired", _NOT_IN_TIME),
    ("timed out", _NOT_IN_TIME),
)
_MARIADB_CONNECTING: dict[object, str] = {
    1045: _REFUSED,
    1698: _REFUSED,
    1044: _NOT_LET_IN,
    1130: _NOT_LET_IN,
    1049: _NO_DATABASE,
    2026: _NO_TLS,
}
_QUOTED = re.compile('"[^"]*"')


class Contended(Unavailable, TransientError):  # type: ignore[misc]
    """Lost against another transaction (deadlock, serialization failure): worth another attempt."""


class NoConnectionLeft(Unavailable):
    """All connections that the server allows are taken."""


class Unstorable(Missing):
    """A text that the database cannot hold (NUL, a lone surrogate), so no row can have it."""


class Undecodable(Unavailable):
    """A stored text of SQLite is no text."""


def translated(error: BaseException, url: str = URL_SETTING) -> StorageError:
    """The storage error that tells what happened, without host, user or SQL; ``url`` is the setting that names the
    server."""
    if isinstance(error, (DataError, UnicodeEncodeError)):
        return Unstorable("No row can hold this text.")
    original = error.orig if isinstance(error, DBAPIError) else error
    if type(original).__module__.startswith("pymysql"):
        return _from_mariadb(error, original, url)
    state = getattr(original, "sqlstate", None)
    if state is not None:
        return _from_postgresql(original, state)
    if type(original).__module__ == "sqlite3":
        return _from_sqlite(str(original))
    sentence = _unconnected(str(original))
    return NoConnectionLeft(sentence) if sentence == _NO_CONNECTION_LEFT else Unavailable(sentence.format(url=url))


@contextmanager
def translating() -> Iterator[None]:
    """Around what raises errors of SQLAlchemy or SQLite: raises storage errors in their place."""
    try:
        yield
    except (*FAILURES, sqlite3.Error) as error:
        raise translated(error) from error


def is_full(error: BaseException) -> bool:
    """True if the server has no connection left for us at this moment."""
    return isinstance(error, FAILURES) and isinstance(translated(error), NoConnectionLeft)


def _unconnected(told: str) -> str:
    """Why psycopg could not connect, if that is what it tells."""
    if not _NOT_CONNECTED.match(told):
        return _SILENT
    told = _QUOTED.sub('""', told)
    return next((sentence for part, sentence in _POSTGRESQL_CONNECTING if part in told), _NOT_OPENED)


def _from_postgresql(original: object, state: str) -> StorageError:
    if state == "23505":
        return Duplicate(_FIELDS.get(original.diag.constraint_name, "id"))  # type: ignore[attr-defined]
    if state in ("40001", "40P01"):
        return Contended("Another transaction was in the way.")
    answer = _POSTGRESQL.get(state)
    return answer() if answer else Unavailable(_SILENT)


def _from_mariadb(error: BaseException, original: object, url: str) -> StorageError:
    if isinstance(error, DBAPIError):
        rule = duplicate_key(error)
        if rule is not None:
            inserted = _INSERT.match(error.statement or "")
            table = inserted[1] if inserted and rule == "PRIMARY" else ""
            return Duplicate(_FIELDS.get(f"pk_{table}" if table else rule, "id"))
    code = original.args[0] if isinstance(original, Exception) and original.args else None
    answer = _MARIADB.get(code)
    if answer:
        return answer()
    sentence = _MARIADB_CONNECTING.get(code, _SILENT)
    if code == CANNOT_CONNECT:
        sentence = _not_reached(getattr(original, "original_exception", None))
    return Unavailable(sentence.format(url=url))


def _not_reached(cause: object) -> str:
    """Why no server was reached, by what the operating system says."""
    if isinstance(cause, socket.gaierror):
        return _UNKNOWN_HOST
    if isinstance(cause, TimeoutError):
        return _NOT_IN_TIME
    if isinstance(cause, SSLError):
        return _NO_TLS
    return _NOBODY if isinstance(cause, (ConnectionRefusedError, FileNotFoundError)) else _NOT_OPENED


def _from_sqlite(message: str) -> StorageError:
    unique = _SQLITE_UNIQUE.match(message)
    if unique:
        return Duplicate(_FIELDS.get(unique[1], "id"))
    if message.startswith("FOREIGN KEY"):
        return Missing()
    if message.startswith("Could not decode to UTF-8"):
        log.error("a row cannot be read: there is a text in it that is none")
        return Undecodable("The database holds a text that is none.")
    sentence = next((sentence for part, sentence in _SQLITE if part in message), _SILENT)
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
