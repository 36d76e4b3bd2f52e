"""SqlBackend and SqlStorage: SQLAlchemy Core, joined to the transactions of the package transaction."""

import logging
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from identity.plugins.sql.engines import Engines, is_missing, open_engines, open_migrating_engine
from identity.plugins.sql.errors import translated
from identity.plugins.sql.migrations import MIGRATE, fits
from identity.plugins.sql.participant import SqlParticipant
from identity.plugins.sql.pool import give_back
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.settings import SQLITE, Settings
from identity.plugins.sql.stores.applications import SqlApplicationStore
from identity.plugins.sql.stores.attempts import SqlAttemptStore
from identity.plugins.sql.stores.audit import SqlAuditStore
from identity.plugins.sql.stores.authorization_requests import SqlAuthorizationRequestStore
from identity.plugins.sql.stores.credentials import SqlCredentialStore
from identity.plugins.sql.stores.effects import SqlEffectStore
from identity.plugins.sql.stores.managers import SqlManagerStore
from identity.plugins.sql.stores.organizations import SqlOrganizationStore
from identity.plugins.sql.stores.outbox import SqlOutboxStore
from identity.plugins.sql.stores.project_grants import SqlProjectGrantStore
from identity.plugins.sql.stores.projects import SqlProjectStore
from identity.plugins.sql.stores.purges import SqlPurgeStore
from identity.plugins.sql.stores.records import SqlRecordStore
from identity.plugins.sql.stores.sessions import SqlSessionStore
from identity.plugins.sql.stores.signing_keys import SqlSigningKeyStore
from identity.plugins.sql.stores.tokens import SqlTokenStore
from identity.plugins.sql.stores.user_grants import SqlUserGrantStore
from identity.plugins.sql.stores.users import SqlUserStore
from identity.storage.backend import Backend, Storage
from identity.storage.errors import Unavailable

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager

log = logging.getLogger(__name__)

_STORES: dict[str, type[SqlStore]] = {
    "organizations": SqlOrganizationStore,
    "projects": SqlProjectStore,
    "project_grants": SqlProjectGrantStore,
    "user_grants": SqlUserGrantStore,
    "users": SqlUserStore,
    "credentials": SqlCredentialStore,
    "applications": SqlApplicationStore,
    "managers": SqlManagerStore,
    "sessions": SqlSessionStore,
    "authorization_requests": SqlAuthorizationRequestStore,
    "attempts": SqlAttemptStore,
    "tokens": SqlTokenStore,
    "signing_keys": SqlSigningKeyStore,
    "outbox": SqlOutboxStore,
    "audit": SqlAuditStore,
    "records": SqlRecordStore,
    "effects": SqlEffectStore,
    "purges": SqlPurgeStore,
}

#: SQLite begins to see with the first statement that reads. Whoever takes what is read may be slow.
_BEGIN_SNAPSHOT = {
    "sqlite": ("BEGIN", "SELECT version_num FROM alembic_version"),
    "postgresql": (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "SET LOCAL idle_in_transaction_session_timeout = '10min'",
        "SELECT version_num FROM alembic_version",
    ),
}

_VERSION = text("SELECT version_num FROM alembic_version")


class SqlStorage(Storage):
    """All stores over one connection; each is made when it is first asked for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        if name not in _STORES:
            raise AttributeError(name)
        store = self.__dict__[name] = _STORES[name](self._connection)
        return store


class SqlBackend(Backend):
    """SQLite or PostgreSQL, whichever the URL names."""

    name: ClassVar[str] = "sql"
    concurrent: ClassVar[bool] = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # SQLite's writers wait in line from their first statement on.
        self.contends = settings.database_url().get_backend_name() != SQLITE
        self._engines: Engines | None = None
        self._inherited: Engines | None = None
        self._opening = threading.Lock()

    def reading(self) -> AbstractContextManager[Storage]:
        """A Storage to read from: a plain connection that commits nothing and begins nothing."""
        return _Reading(self)

    def snapshot(self) -> AbstractContextManager[Storage]:
        """The same in a transaction that reads, and sees what was committed when it began."""
        return _Snapshot(self)

    def writing(self, transactions: "ITransactionManager") -> Storage:
        """A Storage joined to the current transaction; the same one each time it is asked for there."""
        transaction = transactions.get()
        try:
            storage: Storage = transaction.data(self)
        except KeyError:
            storage = self._join(transactions)
            transaction.set_data(self, storage)
        return storage

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Bring the schema up to this version, or tell what would be done."""
        # Alembic takes 10 MB: requests never load it.
        from identity.plugins.sql.migrations.runner import due, everything, run

        if dry_run and is_missing(self._settings):
            return everything()
        engine = open_migrating_engine(self._settings)
        try:
            return due(engine) if dry_run else run(engine)
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise translated(error) from error
        finally:
            engine.dispose()

    def check(self) -> None:
        """Raise Unavailable unless the database answers and its schema fits."""
        connection = self.connect()
        try:
            version = connection.execute(_VERSION).scalar()
        except SQLAlchemyError as error:
            raise translated(error) from error
        finally:
            give_back(connection)
        if version is None:
            raise Unavailable(f"The database has no schema yet. {MIGRATE}")
        fits(version)

    def close(self) -> None:
        """Give back connections; they are opened again when needed."""
        with self._opening:
            engines, self._engines = self._engines, None
        if engines is not None and engines.process == os.getpid():
            engines.close()

    def connect(self) -> Connection:
        """A connection to read from; raises Unavailable."""
        try:
            return self._open().reading.connect()
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise translated(error) from error

    def _join(self, transactions: "ITransactionManager") -> Storage:
        """Begin a database transaction that ends with the current transaction of the manager."""
        try:
            connection = self._open().writing.connect()
            SqlParticipant(connection, transactions)
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise translated(error) from error
        return SqlStorage(connection)

    def _open(self) -> Engines:
        engines = self._engines
        if engines is None or engines.process != os.getpid():
            with self._opening:
                engines = self._engines
                if engines is None or engines.process != os.getpid():
                    # Kept, never closed: closing them here would end the parent's connections and file locks.
                    self._inherited = engines
                    engines = self._engines = open_engines(self._settings)
        return engines


class _Reading(AbstractContextManager[Storage]):
    """Takes a connection from the pool and gives it back."""

    __slots__ = ("_backend", "_connection")

    def __init__(self, backend: SqlBackend) -> None:
        self._backend = backend

    def __enter__(self) -> Storage:
        self._connection = self._backend.connect()
        return SqlStorage(self._connection)

    def __exit__(self, *_exception: object) -> None:
        give_back(self._connection)


class _Snapshot(_Reading):
    """The same with a transaction around it; the pool knows of none, so it is ended here."""

    __slots__ = ()

    def __enter__(self) -> Storage:
        storage = super().__enter__()
        try:
            for words in _BEGIN_SNAPSHOT[self._connection.dialect.name]:
                self._connection.exec_driver_sql(words)
        except BaseException as error:
            self._connection.invalidate()
            super().__exit__()
            raise translated(error) if isinstance(error, SQLAlchemyError) else error from None
        return storage

    def __exit__(self, *_exception: object) -> None:
        try:
            self._connection.exec_driver_sql("ROLLBACK")
        except SQLAlchemyError:
            self._connection.invalidate()
        super().__exit__()
