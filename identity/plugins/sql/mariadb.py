"""MariaDB: connection settings, statements and errors."""

import re
from datetime import timedelta
from typing import Any

from sqlalchemy import URL, Connection, Engine, ExceptionContext, event
from sqlalchemy.exc import DBAPIError

from identity.api.plugins import Measurement
from identity.instrumentation import with_measured_duration
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.log_redaction import create_redacted_engine
from identity.plugins.sql.settings import MARIADB, NETWORK_SECONDS, SqlPluginSettings

__all__ = [
    "BEGIN_SNAPSHOT",
    "CANNOT_CONNECT",
    "MARIADB",
    "MariadbConnection",
    "create_mariadb_engine",
    "duplicate_key_name",
]

#: Strict, and assignments of an UPDATE see the row as it was before, as in the SQL standard.
_SQL_MODE = (
    "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,SIMULTANEOUS_ASSIGNMENT"
)
#: Sorts compare whole keys.
_MAX_SORT_LENGTH = 4096
#: Seconds between two reads of a snapshot, for reader and server.
_SLOW_READER_SECONDS = 600
BEGIN_SNAPSHOT = (
    f"SET SESSION max_statement_time = 0, net_write_timeout = {_SLOW_READER_SECONDS}",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
#: Deadlock, or another cluster node was first: the whole transaction is rolled back. A lock wait timeout rolls back
#: only the statement.
_DEADLOCK = 1213
_DUPLICATE_ENTRY = 1062
CANNOT_CONNECT = 2003
_IN_TRANSACTION = 1
_ROLLED_BACK_KEY = "identity.undone"
_KEY_NAME_PATTERN = re.compile(r"for key '(?:[^']*\.)?([^'.]+)'\Z")
#: Seconds; migrations take long.
_LONG_TIMEOUT_SECONDS = 24 * 3600


class MariadbConnection(DatabaseConnection):
    """A PyMySQL connection. After a deadlock the server has rolled back everything, and the rest must not be
    committed."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        cursor = self.driver.cursor()

        def execute(sql: str, parameters: Any = None) -> Any:
            cursor.execute(sql, parameters)
            return cursor

        self.execute = with_measured_duration(Measurement.STATEMENT, execute)
        #: Shared with the statements that SQLAlchemy sends.
        self._connection_info = connection.info
        row = execute("SHOW SESSION VARIABLES LIKE 'wsrep_on'").fetchone()
        self.is_galera_node = row is not None and row[1] == "ON"

    @property
    def is_aborted_by_server(self) -> bool:
        return self.is_broken or _ROLLED_BACK_KEY in self._connection_info

    def execute_raw(self, sql: str) -> None:
        """Send SQL without parameters. A savepoint before the first statement would have no effect: the transaction
        begins with that statement."""
        if sql.startswith("SAVEPOINT") and not self.driver.server_status & _IN_TRANSACTION:
            super().execute_raw("START TRANSACTION")
        super().execute_raw(sql)

    def allow_slow_reader(self) -> None:
        """Disable the timeouts of a connection that streams one long result; from now on it differs from those of
        requests."""
        self.is_broken = True
        self.driver._read_timeout = _SLOW_READER_SECONDS

    def roll_back(self) -> None:
        self._connection_info.pop(_ROLLED_BACK_KEY, None)
        super().roll_back()

    def wrap_error(self, error: Any) -> DBAPIError:
        """SQLAlchemy's exception; also records a rollback by the server."""
        if _error_code(error) == _DEADLOCK:
            self._connection_info[_ROLLED_BACK_KEY] = True
        if not getattr(self.driver, "open", True):
            self.is_broken = True
        return super().wrap_error(error)

    @property
    def socket_descriptor(self) -> int:
        return int(self.driver._sock.fileno())


def duplicate_key_name(error: DBAPIError) -> str | None:
    """The violated unique constraint; PRIMARY for the primary key of any table."""
    original: Any = error.orig
    if _error_code(original) != _DUPLICATE_ENTRY:
        return None
    found = _KEY_NAME_PATTERN.search(str(original.args[1]))
    return found[1] if found else None


def _error_code(error: Any) -> object:
    return error.args[0] if error.args else None


def create_mariadb_engine(
    url: URL,
    settings: SqlPluginSettings,
    *,
    is_read_only: bool = False,
    is_for_migrations: bool = False,
    **options: Any,
) -> Engine:
    """An engine; ``is_read_only`` for connections that only read, ``is_for_migrations`` for long-running ones."""
    statement = 0 if is_for_migrations else _whole_seconds(settings.statement_timeout)
    lock = 0 if is_for_migrations else _whole_seconds(settings.lock_timeout)
    session: dict[str, object] = {
        "sql_mode": f"'{_SQL_MODE}'",
        "tx_isolation": "'READ-COMMITTED'",
        "tx_read_only": int(is_read_only),
        "max_sort_length": _MAX_SORT_LENGTH,
        "max_statement_time": 0 if is_for_migrations else settings.statement_timeout.total_seconds(),
        "innodb_lock_wait_timeout": lock or _LONG_TIMEOUT_SECONDS,
        "idle_write_transaction_timeout": 0 if is_for_migrations else _whole_seconds(settings.idle_timeout),
        "idle_readonly_transaction_timeout": 0 if is_for_migrations else _SLOW_READER_SECONDS,
    }
    if is_for_migrations:
        # Statements on a table queue behind a schema change that waits for it.
        session["lock_wait_timeout"] = 1
    # Do not wait forever for a server that vanished silently.
    silence = statement + NETWORK_SECONDS if statement else None
    arguments = {
        "connect_timeout": _whole_seconds(settings.connect_timeout) or 10,
        "read_timeout": silence,
        "write_timeout": silence,
        "charset": "utf8mb4",
        "init_command": "SET " + ", ".join(f"SESSION {name} = {value}" for name, value in session.items()),
    }
    engine = create_redacted_engine(url, connect_args=arguments, **options)
    event.listen(engine, "handle_error", _mark_rolled_back)
    event.listen(engine, "do_connect", _connect)
    return engine


def _connect(dialect: Any, _record: object, arguments: list[Any], named: dict[str, Any]) -> Any:
    try:
        # The server's greeting has the same timeout as connecting: a frozen server accepts connections.
        connection = dialect.connect(*arguments, **{**named, "read_timeout": named["connect_timeout"]})
    except (OSError, TypeError, ValueError) as problem:
        # For an unknown URL parameter or a missing file PyMySQL raises plain Python exceptions.
        raise dialect.loaded_dbapi.OperationalError(CANNOT_CONNECT, str(problem)) from problem
    connection._read_timeout = named["read_timeout"]
    return connection


def _mark_rolled_back(failure: ExceptionContext) -> None:
    if failure.connection is not None and _error_code(failure.original_exception) == _DEADLOCK:
        failure.connection.info[_ROLLED_BACK_KEY] = True


def _whole_seconds(duration: timedelta) -> int:
    """At least one unless zero: MariaDB counts whole seconds."""
    return -(-duration // timedelta(seconds=1))
