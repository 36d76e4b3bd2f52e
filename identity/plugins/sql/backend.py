"""SqlBackend: SQLAlchemy Core, joined to the transactions of the package transaction."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sqlalchemy import Engine, text

from identity.plugins.sql import capacity
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.engines import (
    Opened,
    is_missing,
    open_for_requests,
    open_looking_engine,
    open_migrating_engine,
)
from identity.plugins.sql.errors import FAILURES, translated, translating
from identity.plugins.sql.group_commit import MOST
from identity.plugins.sql.mariadb import BEGIN_SNAPSHOT
from identity.plugins.sql.migrations import MIGRATE, REVISIONS, fits, refuse_newer
from identity.plugins.sql.migrations.fingerprints import recognize
from identity.plugins.sql.pool import Pool
from identity.plugins.sql.settings import POSTGRESQL, SQLITE, Settings
from identity.plugins.sql.standby import Standby
from identity.plugins.sql.storage import SqlStorage
from identity.plugins.sql.write_transactions import SqlParticipant
from identity.storage.backend import Backend, Storage
from identity.storage.dump import Dump
from identity.storage.errors import Unavailable
from identity.watching import Load

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager

Made = TypeVar("Made")

log = logging.getLogger(__name__)

#: SQLite begins to see with the first statement that reads. Whoever takes what is read may be slow.
_BEGIN_SNAPSHOT = {
    "sqlite": ("BEGIN", "SELECT version_num FROM alembic_version"),
    "postgresql": (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL idle_in_transaction_session_timeout = '10min'",
        "SELECT version_num FROM alembic_version",
    ),
    "mariadb": BEGIN_SNAPSHOT,
}

#: Whether it has the column ``oldest`` depends on the version.
_VERSION = text("SELECT * FROM alembic_version")


class SqlBackend(Backend):
    """SQLite, PostgreSQL or MariaDB, whichever the URL names."""

    name: ClassVar[str] = "sql"
    concurrent: ClassVar[bool] = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # SQLite's writers wait in line from their first statement on.
        kind = settings.database_url().get_backend_name()
        self.contends = kind != SQLITE
        self.single_writer = kind == SQLITE
        # With PostgreSQL as many as never wait for a connection that another one of them has. MariaDB's driver blocks
        # its thread.
        self.max_greenlets = {SQLITE: MOST, POSTGRESQL: settings.pool_size}.get(kind, 0)
        self.lags = settings.standby_url is not None
        self._opened: Opened | None = None
        self._inherited: Opened | None = None
        self._opening = threading.Lock()
        self._recognized: set[str] = set()

    @property
    def loads(self) -> Sequence[Load]:
        """Of connections to read by, of those to write by, and of those to a standby."""
        opened = self._opened
        if opened is None:
            return ()
        of_standby = () if opened.standby is None else (opened.standby.load,)
        return opened.reading.load("reading"), opened.writer.load, *of_standby

    def reading(self) -> AbstractContextManager[Storage]:
        """A Storage to read from: a plain connection that commits nothing and begins nothing."""
        pool = self._open().reading
        try:
            return _Lent(pool, pool.lend())
        except FAILURES as error:
            raise translated(error) from error

    def lagging(self) -> AbstractContextManager[Storage] | None:
        """A Storage to read from a standby, None unless one is known to be as fresh as is asked for."""
        standby = self._open().standby
        connection = None if standby is None else standby.lend()
        return None if standby is None or connection is None else _Lent(standby, connection)

    def standby_problem(self) -> str | None:
        """What an operator has to mend of the standby, as a sentence; None if all is well or there is none."""
        standby = self._open().standby
        return None if standby is None else standby.problem()

    @contextmanager
    def snapshot(self) -> Iterator[Storage]:
        """A Storage to read from in a transaction, which sees what was committed when it began."""
        pool = self._open().reading
        with translating():
            connection = pool.take()
        try:
            # Until its transaction has begun.
            connection.broken = True
            with translating():
                for words in _BEGIN_SNAPSHOT[connection.dialect.name]:
                    connection.send(words)
            connection.broken = False
            connection.read_slowly()
            yield SqlStorage(connection)
        finally:
            try:
                if connection.usable:
                    connection.send("ROLLBACK")
            except FAILURES:
                connection.broken = True
            pool.give_back(connection)

    def writing(self, transactions: "ITransactionManager") -> Storage:
        """A Storage joined to the current transaction; the same one each time it is asked for there."""
        transaction = transactions.get()
        try:
            storage: Storage = transaction.data(self)
        except KeyError:
            storage = self._join(transactions)
            transaction.set_data(self, storage)
        return storage

    def relieve(self) -> None:
        """Carry what stands in SQLite's log over into the file. Otherwise whoever commits next does, when the log has
        become large, and everybody waits for it."""
        if self._settings.database_url().get_backend_name() == SQLITE:
            with self.reading() as storage:
                storage.connection.send("PRAGMA wal_checkpoint(PASSIVE)")  # type: ignore[attr-defined]

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Bring the schema up to this version, or tell what would be done."""
        # Alembic takes 10 MB: requests never load it.
        from identity.plugins.sql.migrations.runner import due, everything, run

        if dry_run and is_missing(self._settings):
            return everything()
        if dry_run:
            return self._with(open_looking_engine(self._settings), due)
        return self._with(open_migrating_engine(self._settings), partial(run, at_once=self._settings.pooler))

    def migration_plan(self) -> Sequence[str]:
        """The SQL of what is due, and which tables it goes through."""
        from identity.plugins.sql.migrations.plan import plan

        return () if is_missing(self._settings) else self._with(open_looking_engine(self._settings), plan)

    @staticmethod
    def _with(engine: Engine, work: Callable[[Engine], Made]) -> Made:
        try:
            with translating():
                return work(engine)
        finally:
            engine.dispose()

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        """Everything that is committed now, table by table."""
        # Nothing of this is loaded for requests.
        from identity.plugins.sql.dumping import dumped

        with self.snapshot() as storage:
            yield dumped(storage.connection)  # type: ignore[attr-defined]

    def restore(self, dump: Dump) -> None:
        """Make the schema of the dump, fill it, and migrate it, in one transaction."""
        from identity.plugins.sql.dumping import restore

        # Before a file is made for it.
        if dump.schema not in REVISIONS:
            refuse_newer(dump.schema)
        self._with(open_migrating_engine(self._settings), lambda engine: restore(engine, dump))

    def check(self) -> None:
        """Raise Unavailable unless the database answers, and its schema is known and fits."""
        with self.reading() as storage, translating():
            connection = storage.connection.core  # type: ignore[attr-defined]
            version = connection.execute(_VERSION).mappings().first() or {}
            stored = version.get("version_num")
            # Tables are looked at once: readiness is asked for again and again.
            if stored is None or stored not in self._recognized:
                recognize(connection, stored)
        if stored is None:
            raise Unavailable(f"The database has no schema yet. {MIGRATE}")
        self._recognized.add(stored)
        fits(stored, version.get("oldest"))

    def connections_problem(self, processes: int) -> str | None:
        """Whether the server, and the standby's, give as many connections as so many processes may open."""
        if self._settings.database_url().get_backend_name() == SQLITE:
            return None
        opened = self._open()
        problems = []
        with translating():
            # A pooler has connections of its own to the server.
            if not self._settings.pooler:
                with self.reading() as storage:
                    connection = storage.connection.core  # type: ignore[attr-defined]
                    problems.append(capacity.problem(connection, self._settings, processes))
            if opened.standby is not None:
                with opened.standby.connected() as connection:
                    told = capacity.problem(connection, self._settings, processes, pools=1)
                    problems.append(None if told is None else f"At the standby: {told}")
        return " ".join(one for one in problems if one) or None

    def close(self) -> None:
        """Give back connections; they are opened again when needed."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None and opened.process == os.getpid():
            opened.close()

    def _join(self, transactions: "ITransactionManager") -> Storage:
        """Begin a database transaction that ends with the current transaction of the manager."""
        try:
            write_transaction = self._open().writer.begin()
        except FAILURES as error:
            raise translated(error) from error
        SqlParticipant(write_transaction, transactions)
        return SqlStorage(write_transaction.connection)

    def _open(self) -> Opened:
        opened = self._opened
        if opened is None or opened.process != os.getpid():
            with self._opening:
                opened = self._opened
                if opened is None or opened.process != os.getpid():
                    # Kept, never closed: closing them here would end the parent's connections and file locks.
                    self._inherited = opened
                    opened = self._opened = open_for_requests(self._settings)
        return opened


class _Lent(AbstractContextManager[Storage]):
    """Gives a connection back that was lent."""

    __slots__ = ("_connection", "_lender")

    def __init__(self, lender: Pool | Standby, connection: DatabaseConnection) -> None:
        self._lender = lender
        self._connection = connection

    def __enter__(self) -> Storage:
        return SqlStorage(self._connection)

    def __exit__(self, *_exception: object) -> None:
        self._lender.take_back(self._connection)
