"""What is said to MariaDB in words of its own, and what it answers."""

import re
from datetime import timedelta
from typing import Any

from sqlalchemy import URL, Connection, Engine, ExceptionContext, event
from sqlalchemy.exc import DBAPIError

from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.log_redaction import redacted_engine
from identity.plugins.sql.settings import MARIADB, ON_THE_WAY, Settings
from identity.watching import STATEMENT, each_timed

__all__ = ["BEGIN_SNAPSHOT", "CANNOT_CONNECT", "MARIADB", "MariadbConnection", "duplicate_key", "open_engine"]

#: Strict, and an update sees the row as it was before it in each of its assignments, as the SQL standard has it.
_SQL_MODE = (
    "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,SIMULTANEOUS_ASSIGNMENT"
)
#: Sorts compare whole keys.
_LONGEST_SORTED = 4096
#: Seconds that a reader of a snapshot may take for what was read, and the server for the next of it.
_SLOW_READER = 600
BEGIN_SNAPSHOT = (
    f"SET SESSION max_statement_time = 0, net_write_timeout = {_SLOW_READER}",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
#: Deadlock, or another node of a cluster was first: the whole transaction is undone. A wait for a lock that took too
#: long undoes a statement alone.
_DEADLOCK = 1213
_DUPLICATE = 1062
CANNOT_CONNECT = 2003
_IN_TRANSACTION = 1
_UNDONE = "identity.undone"
_KEY = re.compile(r"for key '(?:[^']*\.)?([^'.]+)'\Z")
#: Seconds; migrations take long.
_LONG = 24 * 3600


class MariadbConnection(DatabaseConnection):
    """A connection of PyMySQL's. What deadlocked is undone by the server as a whole, and is never committed in part."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        cursor = self.driver.cursor()

        def execute(words: str, parameters: Any = None) -> Any:
            cursor.execute(words, parameters)
            return cursor

        self.execute = each_timed(STATEMENT, execute)
        #: Shared with the statements that SQLAlchemy sends.
        self._said = connection.info
        row = execute("SHOW SESSION VARIABLES LIKE 'wsrep_on'").fetchone()
        self.certifies = row is not None and row[1] == "ON"

    @property
    def given_up(self) -> bool:
        """True if the server has undone what was written."""
        return self.broken or _UNDONE in self._said

    def send(self, words: str) -> None:
        """The same. A savepoint before the first statement would be none: a transaction begins with that."""
        if words.startswith("SAVEPOINT") and not self.driver.server_status & _IN_TRANSACTION:
            super().send("START TRANSACTION")
        super().send(words)

    def read_slowly(self) -> None:
        """The same. What is streamed is one statement until its last row was taken: it has no limit here, and the
        connection is set otherwise than those of requests from now on."""
        self.broken = True
        self.driver._read_timeout = _SLOW_READER

    def roll_back(self) -> None:
        """End what was begun."""
        self._said.pop(_UNDONE, None)
        super().roll_back()

    def failure(self, error: Any) -> DBAPIError:
        """The same; it is noted what the server has undone."""
        if _code_of(error) == _DEADLOCK:
            self._said[_UNDONE] = True
        if not getattr(self.driver, "open", True):
            self.broken = True
        return super().failure(error)

    @property
    def socket(self) -> int:
        """The number of its socket."""
        return int(self.driver._sock.fileno())


def duplicate_key(error: DBAPIError) -> str | None:
    """The unique rule that this error says is broken; PRIMARY for the key of any table."""
    original: Any = error.orig
    if _code_of(original) != _DUPLICATE:
        return None
    found = _KEY.search(str(original.args[1]))
    return found[1] if found else None


def _code_of(error: Any) -> object:
    return error.args[0] if error.args else None


def open_engine(url: URL, settings: Settings, *, reads: bool = False, patient: bool = False, **options: Any) -> Engine:
    """An engine; ``reads`` says that its connections only read, ``patient`` that they may work for long."""
    statement = 0 if patient else _whole_seconds(settings.statement_timeout)
    lock = 0 if patient else _whole_seconds(settings.lock_timeout)
    session: dict[str, object] = {
        "sql_mode": f"'{_SQL_MODE}'",
        "tx_isolation": "'READ-COMMITTED'",
        "tx_read_only": int(reads),
        "max_sort_length": _LONGEST_SORTED,
        "max_statement_time": 0 if patient else settings.statement_timeout.total_seconds(),
        "innodb_lock_wait_timeout": lock or _LONG,
        "idle_write_transaction_timeout": 0 if patient else _whole_seconds(settings.idle_timeout),
        "idle_readonly_transaction_timeout": 0 if patient else _SLOW_READER,
    }
    if patient:
        # Whoever asks for a table waits behind a change of it that waits.
        session["lock_wait_timeout"] = 1
    # A server that is gone without a word is not waited for without end.
    silence = statement + ON_THE_WAY if statement else None
    arguments = {
        "connect_timeout": _whole_seconds(settings.connect_timeout) or 10,
        "read_timeout": silence,
        "write_timeout": silence,
        "charset": "utf8mb4",
        "init_command": "SET " + ", ".join(f"SESSION {name} = {value}" for name, value in session.items()),
    }
    engine = redacted_engine(url, connect_args=arguments, **options)
    event.listen(engine, "handle_error", _note_undone)
    event.listen(engine, "do_connect", _connect)
    return engine


def _connect(dialect: Any, _record: object, arguments: list[Any], named: dict[str, Any]) -> Any:
    try:
        # A server's greeting is waited for as long as for the way to it: one that is frozen takes connections.
        connection = dialect.connect(*arguments, **{**named, "read_timeout": named["connect_timeout"]})
    except (OSError, TypeError, ValueError) as problem:
        # A word of the URL that PyMySQL does not know, or a file that is not there: it raises what Python did.
        raise dialect.loaded_dbapi.OperationalError(CANNOT_CONNECT, str(problem)) from problem
    connection._read_timeout = named["read_timeout"]
    return connection


def _note_undone(failure: ExceptionContext) -> None:
    if failure.connection is not None and _code_of(failure.original_exception) == _DEADLOCK:
        failure.connection.info[_UNDONE] = True


def _whole_seconds(span: timedelta) -> int:
    """At least one, unless it is none: MariaDB counts them so."""
    return -(-span // timedelta(seconds=1))
