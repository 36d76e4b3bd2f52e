"""SqlBackend: SQLAlchemy Core, joined to transactions of the transaction package."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sqlalchemy import Engine, text

from identity.api.plugins import PoolUsage
from identity.plugins.sql import connection_limits
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.plugins.sql.engines import (
    DatabasePools,
    is_sqlite_file_missing,
    open_inspection_engine,
    open_migration_engine,
    open_request_pools,
)
from identity.plugins.sql.errors import DATABASE_ERRORS, translate_error, translating
from identity.plugins.sql.group_commit import MAX_GROUP_SIZE
from identity.plugins.sql.mariadb import BEGIN_SNAPSHOT
from identity.plugins.sql.migrations import MIGRATE_HINT, REVISIONS, require_known_revision, require_usable_revision
from identity.plugins.sql.migrations.fingerprints import verify_schema
from identity.plugins.sql.settings import POSTGRESQL, SQLITE, SqlPluginSettings
from identity.plugins.sql.standby import StandbyPool
from identity.plugins.sql.storage import SqlStorage
from identity.plugins.sql.write_transactions import SqlTransactionParticipant, WriteTransaction
from identity.storage.backend import Backend, DatabaseFacts, Storage
from identity.storage.dump import StorageDump
from identity.storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager

ResultT = TypeVar("ResultT")

log = logging.getLogger(__name__)

#: SQLite's snapshot begins with the first read. The reader may be slow.
_BEGIN_SNAPSHOT = {
    "sqlite": ("BEGIN", "SELECT version_num FROM alembic_version"),
    "postgresql": (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL idle_in_transaction_session_timeout = '10min'",
        "SELECT version_num FROM alembic_version",
    ),
    "mariadb": BEGIN_SNAPSHOT,
}

#: The column ``oldest`` exists only in later revisions.
_SELECT_VERSION = text("SELECT * FROM alembic_version")

#: The product by dialect, and the statement that returns its version and the size of the database.
_FACTS = {
    "sqlite": (
        "SQLite",
        "SELECT sqlite_version(), page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    ),
    "postgresql": ("PostgreSQL", "SELECT current_setting('server_version'), pg_database_size(current_database())"),
    "mariadb": (
        "MariaDB",
        "SELECT version(), sum(data_length + index_length) FROM information_schema.tables"
        " WHERE table_schema = database()",
    ),
}


class SqlBackend(Backend):
    """SQLite, PostgreSQL or MariaDB, depending on the URL."""

    name: ClassVar[str] = "sql"
    is_concurrent: ClassVar[bool] = True

    def __init__(self, settings: SqlPluginSettings) -> None:
        self._settings = settings
        # SQLite's writers queue from their first statement on.
        kind = settings.database_url().get_backend_name()
        self.has_write_conflicts = kind != SQLITE
        self.has_single_writer = kind == SQLITE
        # PostgreSQL: as many as never wait for a connection that another of them holds. MariaDB's driver blocks its
        # thread.
        self.max_greenlets = {SQLITE: MAX_GROUP_SIZE, POSTGRESQL: settings.pool_size}.get(kind, 0)
        self.has_standby = settings.standby_url is not None
        self._pools: DatabasePools | None = None
        self._pools_before_fork: DatabasePools | None = None
        self._open_lock = threading.Lock()
        self._verified_revisions: set[str] = set()

    @property
    def pool_usages(self) -> Sequence[PoolUsage]:
        """Connections for reading, for writing, and to a standby."""
        opened = self._pools
        if opened is None:
            return ()
        of_standby = () if opened.standby is None else (opened.standby.usage,)
        return opened.read_pool.usage("reading"), opened.writer.usage, *of_standby

    def read_session(self) -> AbstractContextManager[Storage]:
        pool = self._open_pools().read_pool
        try:
            return _ReadSession(pool, pool.acquire_shared())
        except DATABASE_ERRORS as error:
            raise translate_error(error) from error

    def standby_session(self) -> AbstractContextManager[Storage] | None:
        standby = self._open_pools().standby
        connection = None if standby is None else standby.acquire_shared()
        return None if standby is None or connection is None else _ReadSession(standby, connection)

    def standby_problem(self) -> str | None:
        """A problem of the standby for the operator, as a sentence; None without one."""
        standby = self._open_pools().standby
        return None if standby is None else standby.find_problem()

    @contextmanager
    def snapshot(self) -> Iterator[Storage]:
        pool = self._open_pools().read_pool
        with translating():
            connection = pool.acquire()
        try:
            # Unusable until its transaction has begun.
            connection.is_broken = True
            with translating():
                for statement in _BEGIN_SNAPSHOT[connection.dialect.name]:
                    connection.execute_raw(statement)
            connection.is_broken = False
            connection.allow_slow_reader()
            yield SqlStorage(connection)
        finally:
            try:
                if connection.is_usable:
                    connection.execute_raw("ROLLBACK")
            except DATABASE_ERRORS:
                connection.is_broken = True
            pool.release(connection)

    def join_transaction(self, transaction_manager: "ITransactionManager") -> Storage:
        transaction = transaction_manager.get()
        try:
            storage: Storage = transaction.data(self)
        except KeyError:
            write_transaction = self._begin_transaction()
            SqlTransactionParticipant(write_transaction, transaction_manager)
            storage = SqlStorage(write_transaction.connection)
            transaction.set_data(self, storage)
        return storage

    @contextmanager
    def separate_transaction(self, transaction_manager: "ITransactionManager") -> Iterator[Storage]:
        # Without the package transaction, this takes half of the time.
        write_transaction = self._begin_transaction()
        write_transaction.connection.transaction = None
        try:
            yield SqlStorage(write_transaction.connection)
            write_transaction.commit()
        except BaseException:
            write_transaction.roll_back()
            raise

    def checkpoint(self) -> None:
        """Checkpoint SQLite's WAL. Otherwise the next commit does it once the log is large, and everyone waits for
        it."""
        if self._settings.database_url().get_backend_name() == SQLITE:
            with self.read_session() as storage:
                storage.connection.execute_raw("PRAGMA wal_checkpoint(PASSIVE)")  # type: ignore[attr-defined]

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        # Alembic takes 10 MB: requests never load it.
        from identity.plugins.sql.migrations.runner import list_all_revisions, list_pending_revisions, run_migrations

        if dry_run and is_sqlite_file_missing(self._settings):
            return list_all_revisions()
        if dry_run:
            return self._run_with_engine(open_inspection_engine(self._settings), list_pending_revisions)
        return self._run_with_engine(
            open_migration_engine(self._settings), partial(run_migrations, is_immediate=self._settings.pooler)
        )

    def migration_sql(self) -> Sequence[str]:
        """The pending SQL, and the tables it touches."""
        from identity.plugins.sql.migrations.dry_run import dry_run_sql

        return (
            ()
            if is_sqlite_file_missing(self._settings)
            else self._run_with_engine(open_inspection_engine(self._settings), dry_run_sql)
        )

    @staticmethod
    def _run_with_engine(engine: Engine, work: Callable[[Engine], ResultT]) -> ResultT:
        try:
            with translating():
                return work(engine)
        finally:
            engine.dispose()

    @contextmanager
    def dump(self) -> Iterator[StorageDump]:
        # Requests never load this.
        from identity.plugins.sql.table_dump import dump_tables

        with self.snapshot() as storage:
            yield dump_tables(storage.connection)  # type: ignore[attr-defined]

    def restore(self, dump: StorageDump) -> None:
        from identity.plugins.sql.table_dump import restore_tables

        # Before a database file is created.
        if dump.schema_revision not in REVISIONS:
            require_known_revision(dump.schema_revision)
        self._run_with_engine(open_migration_engine(self._settings), lambda engine: restore_tables(engine, dump))

    def check(self) -> None:
        with self.read_session() as storage, translating():
            connection = storage.connection.core  # type: ignore[attr-defined]
            version = connection.execute(_SELECT_VERSION).mappings().first() or {}
            stored = version.get("version_num")
            # Verified once: readiness is checked again and again.
            if stored is None or stored not in self._verified_revisions:
                verify_schema(connection, stored)
        if stored is None:
            raise StorageUnavailable(f"The database has no schema yet. {MIGRATE_HINT}")
        self._verified_revisions.add(stored)
        require_usable_revision(stored, version.get("oldest"))

    def connection_limit_problem(self, process_count: int) -> str | None:
        if self._settings.database_url().get_backend_name() == SQLITE:
            return None
        opened = self._open_pools()
        problems = []
        with translating():
            # A pooler opens its own connections to the server.
            if not self._settings.pooler:
                with self.read_session() as storage:
                    connection = storage.connection.core  # type: ignore[attr-defined]
                    problems.append(
                        connection_limits.connection_limit_problem(connection, self._settings, process_count)
                    )
            if opened.standby is not None:
                with opened.standby.connection() as connection:
                    limit_problem = connection_limits.connection_limit_problem(
                        connection, self._settings, process_count, pools=1
                    )
                    problems.append(None if limit_problem is None else f"At the standby: {limit_problem}")
        return " ".join(problem for problem in problems if problem) or None

    def read_facts(self) -> DatabaseFacts:
        with self.read_session() as storage, translating():
            connection = storage.connection.core  # type: ignore[attr-defined]
            product, statement = _FACTS[connection.dialect.name]
            version, size = connection.exec_driver_sql(statement).one()
        return DatabaseFacts(product, str(version), None if size is None else int(size))

    def close(self) -> None:
        with self._open_lock:
            opened, self._pools = self._pools, None
        if opened is not None and opened.process_id == os.getpid():
            opened.close()

    def _begin_transaction(self) -> WriteTransaction:
        try:
            return self._open_pools().writer.begin_transaction()
        except DATABASE_ERRORS as error:
            raise translate_error(error) from error

    def _open_pools(self) -> DatabasePools:
        opened = self._pools
        if opened is None or opened.process_id != os.getpid():
            with self._open_lock:
                opened = self._pools
                if opened is None or opened.process_id != os.getpid():
                    # Kept, never closed: closing them here would end the parent's connections and file locks.
                    self._pools_before_fork = opened
                    opened = self._pools = open_request_pools(self._settings)
        return opened


class _ReadSession(AbstractContextManager[Storage]):
    """Returns a shared connection at the end."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: ConnectionPool | StandbyPool, connection: DatabaseConnection) -> None:
        self._pool = pool
        self._connection = connection

    def __enter__(self) -> Storage:
        return SqlStorage(self._connection)

    def __exit__(self, *_exception: object) -> None:
        self._pool.release_shared(self._connection)
