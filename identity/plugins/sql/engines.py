"""Engines and pools of a process: read connections without transactions, and write connections.

Their sessions are configured when a connection is opened, so that nothing has to be set and reset at each use.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, event

from identity import instrumentation
from identity.api.plugins import run_in_executor
from identity.concurrency import in_greenlet
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.connection_pool import ConnectionPool, SharedReadPool
from identity.plugins.sql.errors import is_connection_limit_reached
from identity.plugins.sql.group_commit import GroupCommitWriter, execute_when_unlocked
from identity.plugins.sql.log_redaction import create_redacted_engine
from identity.plugins.sql.mariadb import MariadbConnection
from identity.plugins.sql.mariadb import create_mariadb_engine as open_mariadb
from identity.plugins.sql.query_batching import QueryBatches
from identity.plugins.sql.settings import MARIADB, NETWORK_SECONDS, POSTGRESQL, SQLITE, SqlPluginSettings
from identity.plugins.sql.standby import StandbyConnection, StandbyPool
from identity.plugins.sql.write_transactions import SeparateCommitWriter, Writer
from identity.storage.errors import StorageUnavailable

#: The driver begins no transaction by itself; statements do.
_AUTOCOMMIT: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "skip_autocommit_rollback": True}

#: Threads that connect while greenlets wait.
_MAX_CONCURRENT_CONNECTS = 4

#: How long a schema change waits for a table lock.
_MIGRATION_LOCK_TIMEOUT = timedelta(milliseconds=500)

#: How long a migration of SQLite waits for other writers.
_MIGRATION_BUSY_SECONDS = 60.0

#: Statement timeout on a standby.
_STANDBY_TIMEOUT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class DatabasePools:
    """Pools of a process, and its pid: connections do not survive a fork."""

    read_pool: ConnectionPool
    writer: Writer
    process_id: int
    standby: StandbyPool | None = None

    def close(self) -> None:
        if self.standby is not None:
            self.standby.close()
        self.read_pool.close()
        self.writer.close()


def is_sqlite_file_missing(settings: SqlPluginSettings) -> bool:
    """True if the URL names an SQLite file that does not exist."""
    url = settings.database_url()
    return url.get_backend_name() == SQLITE and not Path(str(url.database)).exists()


def open_request_pools(settings: SqlPluginSettings) -> DatabasePools:
    """Pools for requests. Connections are opened when needed. Raises StorageUnavailable if the SQLite file does not
    exist: only a migration creates it."""
    url = _add_password(settings.database_url(), settings)
    if is_sqlite_file_missing(settings):
        raise StorageUnavailable(
            f"There is no database file {url.database}. Is that where the service keeps its data, as"
            " identity.plugin.sql.url says? `identity migrate -c INI` makes a new one."
        )
    if url.get_backend_name() == SQLITE:
        reading = _create_sqlite_engine(url, settings, **_AUTOCOMMIT)
        event.listen(reading, "connect", _set_query_only)
        # SQLite has one writer at a time. Writers of this process queue for its one connection; only that competes with
        # other processes.
        writing = _create_sqlite_engine(url, settings, **_AUTOCOMMIT)
        event.listen(writing, "connect", _disable_busy_timeout)
        wait = settings.busy_timeout
        line = ConnectionPool(_connection_factory(writing), size=1, wait=wait.total_seconds())
        shared = GroupCommitWriter(line, wait=wait, is_grouping=settings.share_commits)
        return DatabasePools(_create_pool(reading, settings, SharedReadPool), shared, os.getpid())
    if url.get_backend_name() == MARIADB:
        reading = open_mariadb(url, settings, is_read_only=True, **_AUTOCOMMIT)
        return DatabasePools(
            _create_pool(reading, settings),
            SeparateCommitWriter(_create_pool(open_mariadb(url, settings), settings)),
            os.getpid(),
        )
    only_reads = {"default_transaction_read_only": "on"}
    reading = _create_postgresql_engine(url, settings, only_reads, **_AUTOCOMMIT)
    writing = _create_postgresql_engine(url, settings, {})
    pool = _create_pool(reading, settings, query_batches=QueryBatches())
    return DatabasePools(
        pool,
        SeparateCommitWriter(_create_pool(writing, settings, query_batches=QueryBatches())),
        os.getpid(),
        _open_standby(settings, pool),
    )


def _open_standby(settings: SqlPluginSettings, primary: ConnectionPool) -> StandbyPool | None:
    """The standby's pool, if one is set."""
    if settings.standby_url is None:
        return None
    # A caller waiting for it could read from the primary instead.
    most = min(settings.statement_timeout or _STANDBY_TIMEOUT, _STANDBY_TIMEOUT)
    impatient = replace(settings, pooler=False, statement_timeout=most)
    url = _add_password(settings.standby_database_url(), settings)
    engine = _create_postgresql_engine(url, impatient, {}, **_AUTOCOMMIT)
    return StandbyPool(
        primary, _create_pool(engine, impatient, connection_class=StandbyConnection), settings.standby_staleness
    )


def open_migration_engine(settings: SqlPluginSettings) -> Engine:
    """An engine for migrations, whose connections may run long and yield to others."""
    url = _add_password(settings.database_url(), settings)
    if url.get_backend_name() == SQLITE:
        _create_file(Path(str(url.database)))
        engine = _create_sqlite_engine(url, settings)
        event.listen(engine, "begin", _begin_immediate)
        return engine
    if url.get_backend_name() == MARIADB:
        return open_mariadb(url, settings, is_for_migrations=True)
    endless = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
    # Statements on a table queue behind a schema change that waits for it.
    endless["lock_timeout"] = _milliseconds(_MIGRATION_LOCK_TIMEOUT)
    # After waiting for a concurrent migration, its result has to be visible.
    endless["default_transaction_isolation"] = r"read\ committed"
    return _create_postgresql_engine(url, settings, endless)


def open_inspection_engine(settings: SqlPluginSettings) -> Engine:
    """An engine for inspecting the schema: it blocks no other session, and changes nothing."""
    url = _add_password(settings.database_url(), settings)
    if url.get_backend_name() == SQLITE:
        engine = _create_sqlite_engine(url, settings)
        event.listen(engine, "connect", _set_query_only)
        return engine
    if url.get_backend_name() == MARIADB:
        return open_mariadb(url, settings, is_read_only=True)
    return _create_postgresql_engine(url, settings, {"default_transaction_read_only": "on"})


def _create_pool(
    engine: Engine,
    settings: SqlPluginSettings,
    pool_class: type[ConnectionPool] = ConnectionPool,
    connection_class: type[DatabaseConnection] = DatabaseConnection,
    query_batches: QueryBatches | None = None,
) -> ConnectionPool:
    opens = _connection_factory(engine, connection_class, query_batches)
    wait = settings.pool_timeout.total_seconds()
    # Callers do not wait for a full standby: the primary serves instead.
    waits = is_connection_limit_reached if connection_class is DatabaseConnection else lambda _: False
    return pool_class(opens, size=settings.pool_size, wait=wait, is_limit_error=waits)


def _connection_factory(
    engine: Engine,
    connection_class: type[DatabaseConnection] = DatabaseConnection,
    query_batches: QueryBatches | None = None,
) -> Callable[[], DatabaseConnection]:
    """A function that opens a connection. Raises SQLAlchemyError."""
    if instrumentation.has_observers():
        event.listen(engine, "before_cursor_execute", _start_statement_timer)
        event.listen(engine, "after_cursor_execute", _record_statement)
        event.listen(engine, "handle_error", _log_failure)
    if engine.dialect.name == MARIADB:
        connection_class = MariadbConnection

    def opens() -> DatabaseConnection:
        connection = connection_class(engine.connect())
        connection.query_batches = query_batches
        return connection

    if engine.dialect.name != POSTGRESQL:
        return opens
    # Connecting takes several round trips, and SQLAlchemy holds a lock during the first of them.
    return lambda: run_in_executor(_connect_executor(), opens) if in_greenlet() else opens()


def _start_statement_timer(
    _connection: object, _cursor: object, _sql: str, _values: object, context: Any, _many: bool
) -> None:
    context.identity_began = time.perf_counter()


def _record_statement(
    _connection: object, _cursor: object, sql: str, _values: object, context: Any, _many: bool
) -> None:
    instrumentation.record_duration(
        instrumentation.Measurement.STATEMENT, sql, time.perf_counter() - context.identity_began
    )


def _log_failure(failure: Any) -> None:
    began = getattr(failure.execution_context, "identity_began", None)
    if began is not None and failure.statement is not None:
        instrumentation.record_duration(
            instrumentation.Measurement.STATEMENT, failure.statement, time.perf_counter() - began
        )


def _add_password(url: URL, settings: SqlPluginSettings) -> URL:
    """The URL with the password from its file."""
    path = settings.password_file
    if path is None:
        return url
    try:
        other_permissions = stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
        password = path.read_text().strip()
    except OSError as problem:
        why = f"{path} cannot be read: {problem.strerror}."
        raise StorageUnavailable(f"identity.plugin.sql.password_file: {why}") from None
    if other_permissions:
        raise StorageUnavailable(f"identity.plugin.sql.password_file: {path} is open to others: run chmod 600 {path}")
    return url.set(password=password)


def _create_sqlite_engine(url: URL, settings: SqlPluginSettings, **options: Any) -> Engine:
    wait = settings.busy_timeout.total_seconds()
    # isolation_level None: the driver begins nothing by itself.
    arguments = {"isolation_level": None, "check_same_thread": False, "timeout": wait}
    engine = create_redacted_engine(url, connect_args=arguments, **options)

    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The switch itself does not wait for other connections.
        execute_when_unlocked(connection, "PRAGMA journal_mode = WAL", wait)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    event.listen(engine, "connect", prepare)
    return engine


def _create_file(path: Path) -> None:
    """Create the file and its directory without access for others; SQLite gives its mode to -wal and -shm files,
    too."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        raise StorageUnavailable(f"The database file {path} cannot be created or opened.") from None


def _set_query_only(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def _disable_busy_timeout(connection: sqlite3.Connection, _record: object) -> None:
    """Our own loop waits for the lock, so that others run meanwhile."""
    connection.execute("PRAGMA busy_timeout = 0")


def _begin_immediate(connection: Connection) -> None:
    """Take the write lock at once: a read transaction that turned into a write would fail instead of waiting."""
    driver: Any = connection.connection.dbapi_connection
    execute_when_unlocked(driver, "BEGIN IMMEDIATE", _MIGRATION_BUSY_SECONDS)


def _create_postgresql_engine(
    url: URL, settings: SqlPluginSettings, overrides: dict[str, str], **options: Any
) -> Engine:
    session = {
        "statement_timeout": _milliseconds(settings.statement_timeout),
        "lock_timeout": _milliseconds(settings.lock_timeout),
        "idle_in_transaction_session_timeout": _milliseconds(settings.idle_timeout),
        **overrides,
    }
    option_text = url.query.get("options", "")
    kept_options = [
        option_text if isinstance(option_text, str) else " ".join(option_text),
        *(f"-c {key}={value}" for key, value in session.items()),
    ]
    arguments: dict[str, Any] = {
        "connect_timeout": max(1, round(settings.connect_timeout.total_seconds())),
        "application_name": "identity",
        # For a network that drops packets: otherwise the operating system waits a quarter of an hour.
        "tcp_user_timeout": _milliseconds(settings.statement_timeout),
        "keepalives_idle": 5,
        "keepalives_interval": 2,
    }
    if settings.pooler:
        # A pooler may switch server connections: settings and prepared statements are lost.
        arguments["prepare_threshold"] = None
    else:
        arguments["options"] = " ".join(kept_options).strip()
    engine = create_redacted_engine(url.difference_update_query(["options"]), connect_args=arguments, **options)
    only_reads = settings.pooler and "default_transaction_read_only" in session
    event.listen(
        engine, "do_connect", _connect_options(_socket_timeout(session["statement_timeout"]), is_read_only=only_reads)
    )
    return engine


def _socket_timeout(statement_timeout: str) -> float | None:
    """Seconds of silence allowed: the server's statement timeout and some network time."""
    return int(statement_timeout) / 1000 + NETWORK_SECONDS if int(statement_timeout) else None


def _connect_options(socket_timeout: float | None, *, is_read_only: bool) -> Callable[..., Any]:
    def connect(_dialect: object, _record: object, arguments: list[Any], named: dict[str, Any]) -> Any:
        # Only loaded for PostgreSQL.
        from identity.plugins.sql.psycopg_connection import GreenletPsycopgConnection, ReadOnlyCursor

        if is_read_only:
            named["cursor_factory"] = ReadOnlyCursor
        connection = GreenletPsycopgConnection.connect(*arguments, **named)
        connection.socket_timeout = socket_timeout
        return connection

    return connect


@cache
def _connect_executor() -> Executor:
    return ThreadPoolExecutor(_MAX_CONCURRENT_CONNECTS, "identity-connecting")


def _milliseconds(duration: timedelta) -> str:
    return str(duration // timedelta(milliseconds=1))
