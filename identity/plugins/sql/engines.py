"""What a process opens: connections that read outside any transaction, and others that write inside them.

They differ in what a connection is set to when it is opened, so that nothing needs to be set (and reset) each time
one is taken from its pool.
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

from identity import watching
from identity.concurrency import in_greenlet, run_in_executor
from identity.plugins.sql.batching import Batches
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.errors import is_full
from identity.plugins.sql.group_commit import GroupCommit
from identity.plugins.sql.log_redaction import redacted_engine
from identity.plugins.sql.mariadb import MariadbConnection
from identity.plugins.sql.mariadb import open_engine as open_mariadb
from identity.plugins.sql.pool import GreenletsShare, Pool
from identity.plugins.sql.settings import MARIADB, ON_THE_WAY, POSTGRESQL, SQLITE, Settings
from identity.plugins.sql.standby import Standby, StandbyConnection
from identity.plugins.sql.write_transactions import SeparateCommits, Writer
from identity.storage.errors import Unavailable

#: Begins nothing: the driver's own words do, where something is to begin.
_NO_TRANSACTION: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "skip_autocommit_rollback": True}

#: Threads that connect while greenlets wait for it.
_MOST_CONNECTING = 4

#: How long a change of the schema waits for those who hold its table.
_WAIT_OF_CHANGES = timedelta(milliseconds=500)

#: How long a statement may take at a standby.
_STANDBY_PATIENCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Opened:
    """How a process reads and writes, and which process it is: connections do not survive a fork."""

    reading: Pool
    writer: Writer
    process: int
    standby: Standby | None = None

    def close(self) -> None:
        """Close all idle connections; those in use are closed when they are given back."""
        if self.standby is not None:
            self.standby.close()
        self.reading.close()
        self.writer.close()


def is_missing(settings: Settings) -> bool:
    """True if the URL names an SQLite file that does not exist."""
    url = settings.database_url()
    return url.get_backend_name() == SQLITE and not Path(str(url.database)).exists()


def open_for_requests(settings: Settings) -> Opened:
    """Pools for requests. Connections are opened when they are needed.

    Raises Unavailable if there is no such SQLite file: only a migration makes one.
    """
    url = _complete(settings)
    if is_missing(settings):
        raise Unavailable(
            f"There is no database file {url.database}. Is that where the service keeps its data, as"
            " identity.plugin.sql.url says? `identity migrate -c INI` makes a new one."
        )
    if url.get_backend_name() == SQLITE:
        reading = _sqlite(url, settings, **_NO_TRANSACTION)
        event.listen(reading, "connect", _read_only)
        # SQLite has one writer at a time. Writers of this process wait in line for its one connection; only that
        # competes with those of other processes.
        writing = _sqlite(url, settings, **_NO_TRANSACTION)
        event.listen(writing, "connect", _never_wait)
        wait = settings.busy_timeout
        line = Pool(_opener(writing), size=1, wait=wait.total_seconds())
        shared = GroupCommit(line, wait=wait, share=settings.share_commits)
        return Opened(_pool(reading, settings, GreenletsShare), shared, os.getpid())
    if url.get_backend_name() == MARIADB:
        reading = open_mariadb(url, settings, reads=True, **_NO_TRANSACTION)
        return Opened(
            _pool(reading, settings), SeparateCommits(_pool(open_mariadb(url, settings), settings)), os.getpid()
        )
    only_reads = {"default_transaction_read_only": "on"}
    reading = _postgresql(url, settings, only_reads, **_NO_TRANSACTION)
    writing = _postgresql(url, settings, {})
    pool = _pool(reading, settings, batches=Batches())
    return Opened(
        pool, SeparateCommits(_pool(writing, settings, batches=Batches())), os.getpid(), _standby(settings, pool)
    )


def _standby(settings: Settings, primary: Pool) -> Standby | None:
    """The standby, if one is set."""
    if settings.standby_url is None:
        return None
    # Whoever waits for it could have been answered by the primary.
    most = min(settings.statement_timeout or _STANDBY_PATIENCE, _STANDBY_PATIENCE)
    impatient = replace(settings, pooler=False, statement_timeout=most)
    url = _with_password(settings.standby_database_url(), settings)
    engine = _postgresql(url, impatient, {}, **_NO_TRANSACTION)
    return Standby(primary, _pool(engine, impatient, connection=StandbyConnection), settings.standby_staleness)


def open_migrating_engine(settings: Settings) -> Engine:
    """An engine for migrations, whose connections may work for long, and let others go first."""
    url = _complete(settings)
    if url.get_backend_name() == SQLITE:
        _create_file(Path(str(url.database)))
        engine = _sqlite(url, settings)
        event.listen(engine, "begin", _begin_immediate(timedelta(minutes=1)))
        return engine
    if url.get_backend_name() == MARIADB:
        return open_mariadb(url, settings, patient=True)
    endless = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
    # Whoever asks for a table waits behind a change of it that waits.
    endless["lock_timeout"] = _milliseconds(_WAIT_OF_CHANGES)
    # Whoever waited for another one that migrates has to see what that one made.
    endless["default_transaction_isolation"] = r"read\ committed"
    return _postgresql(url, settings, endless)


def open_looking_engine(settings: Settings) -> Engine:
    """An engine for looking at the schema: it holds nobody up, and changes nothing."""
    url = _complete(settings)
    if url.get_backend_name() == SQLITE:
        engine = _sqlite(url, settings)
        event.listen(engine, "connect", _read_only)
        return engine
    if url.get_backend_name() == MARIADB:
        return open_mariadb(url, settings, reads=True)
    return _postgresql(url, settings, {"default_transaction_read_only": "on"})


def _pool(
    engine: Engine,
    settings: Settings,
    kind: type[Pool] = Pool,
    connection: type[DatabaseConnection] = DatabaseConnection,
    batches: Batches | None = None,
) -> Pool:
    opens = _opener(engine, connection, batches)
    wait = settings.pool_timeout.total_seconds()
    # Nobody waits for a standby that has none left: the primary answers.
    waits = is_full if connection is DatabaseConnection else _never
    return kind(opens, size=settings.pool_size, wait=wait, is_full=waits)


def _never(_error: BaseException) -> bool:
    return False


def _opener(
    engine: Engine, kind: type[DatabaseConnection] = DatabaseConnection, batches: Batches | None = None
) -> Callable[[], DatabaseConnection]:
    """What opens a connection. Raises SQLAlchemyError."""
    if watching.watched():
        event.listen(engine, "before_cursor_execute", _begin_statement)
        event.listen(engine, "after_cursor_execute", _tell_statement)
        event.listen(engine, "handle_error", _tell_failure)
    if engine.dialect.name == MARIADB:
        kind = MariadbConnection

    def opens() -> DatabaseConnection:
        connection = kind(engine.connect())
        connection.batches = batches
        return connection

    if engine.dialect.name != POSTGRESQL:
        return opens
    # To connect takes several rounds, and SQLAlchemy holds a lock for the first of them.
    return lambda: run_in_executor(_connecting(), opens) if in_greenlet() else opens()


def _begin_statement(
    _connection: object, _cursor: object, _words: str, _values: object, context: Any, _many: bool
) -> None:
    context.identity_began = time.perf_counter()


def _tell_statement(
    _connection: object, _cursor: object, words: str, _values: object, context: Any, _many: bool
) -> None:
    watching.took(watching.STATEMENT, words, time.perf_counter() - context.identity_began)


def _tell_failure(failure: Any) -> None:
    began = getattr(failure.execution_context, "identity_began", None)
    if began is not None and failure.statement is not None:
        watching.took(watching.STATEMENT, failure.statement, time.perf_counter() - began)


def _complete(settings: Settings) -> URL:
    """The URL with the password from its file."""
    return _with_password(settings.database_url(), settings)


def _with_password(url: URL, settings: Settings) -> URL:
    path = settings.password_file
    if path is None:
        return url
    try:
        others = stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
        password = path.read_text().strip()
    except OSError as problem:
        why = f"{path} cannot be read: {problem.strerror}."
        raise Unavailable(f"identity.plugin.sql.password_file: {why}") from None
    if others:
        raise Unavailable(f"identity.plugin.sql.password_file: {path} is open to others: run chmod 600 {path}")
    return url.set(password=password)


def _sqlite(url: URL, settings: Settings, **options: Any) -> Engine:
    wait = settings.busy_timeout.total_seconds()
    # isolation_level None: the driver begins nothing by itself.
    arguments = {"isolation_level": None, "check_same_thread": False, "timeout": wait}
    engine = redacted_engine(url, connect_args=arguments, **options)

    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        _switch_to_wal(connection, wait)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    event.listen(engine, "connect", prepare)
    return engine


def _create_file(path: Path) -> None:
    """Make the file and its folder, closed to others; SQLite gives the mode to its -wal and -shm files too."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        raise Unavailable(f"The database file {path} cannot be created or opened.") from None


def _switch_to_wal(connection: sqlite3.Connection, wait: float) -> None:
    """Set the journal mode; the switch itself does not wait for other connections, so we do."""
    give_up_at = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
        else:
            return


def _read_only(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def _never_wait(connection: sqlite3.Connection, _record: object) -> None:
    """Whoever begins waits by itself, so that others go on meanwhile."""
    connection.execute("PRAGMA busy_timeout = 0")


def _begin_immediate(wait: timedelta) -> Callable[[Connection], None]:
    """What takes the write lock at once: a read that turned into a write would fail instead of waiting."""

    def begin(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        give_up_at = time.monotonic() + wait.total_seconds()
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > give_up_at:
                    raise
            else:
                return

    return begin


def _postgresql(url: URL, settings: Settings, overrides: dict[str, str], **options: Any) -> Engine:
    session = {
        "statement_timeout": _milliseconds(settings.statement_timeout),
        "lock_timeout": _milliseconds(settings.lock_timeout),
        "idle_in_transaction_session_timeout": _milliseconds(settings.idle_timeout),
        **overrides,
    }
    given = url.query.get("options", "")
    words = [
        given if isinstance(given, str) else " ".join(given),
        *(f"-c {key}={value}" for key, value in session.items()),
    ]
    arguments: dict[str, Any] = {
        "connect_timeout": max(1, round(settings.connect_timeout.total_seconds())),
        "application_name": "identity",
        # A network that swallows everything: without these the operating system waits a quarter of an hour.
        "tcp_user_timeout": _milliseconds(settings.statement_timeout),
        "keepalives_idle": 5,
        "keepalives_interval": 2,
    }
    if settings.pooler:
        # What is set or prepared on one connection is not there on the next.
        arguments["prepare_threshold"] = None
    else:
        arguments["options"] = " ".join(words).strip()
    engine = redacted_engine(url.difference_update_query(["options"]), connect_args=arguments, **options)
    only_reads = settings.pooler and "default_transaction_read_only" in session
    event.listen(engine, "do_connect", _connecting_with(_patience(session["statement_timeout"]), only_reads=only_reads))
    return engine


def _patience(statement_timeout: str) -> float | None:
    """How many seconds a server may be silent: the time that it gives a statement, and some for the way."""
    return int(statement_timeout) / 1000 + ON_THE_WAY if int(statement_timeout) else None


def _connecting_with(patience: float | None, *, only_reads: bool) -> Callable[..., Any]:
    def connect(_dialect: object, _record: object, arguments: list[Any], named: dict[str, Any]) -> Any:
        # Only those load psycopg who use it.
        from identity.plugins.sql.psycopg_connection import PsycopgConnection, ReadingCursor

        if only_reads:
            named["cursor_factory"] = ReadingCursor
        connection = PsycopgConnection.connect(*arguments, **named)
        connection.patience = patience
        return connection

    return connect


@cache
def _connecting() -> Executor:
    return ThreadPoolExecutor(_MOST_CONNECTING, "identity-connecting")


def _milliseconds(span: timedelta) -> str:
    return str(span // timedelta(milliseconds=1))
