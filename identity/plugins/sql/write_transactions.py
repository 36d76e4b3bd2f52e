"""Write transactions: how they begin and end, and how they join a transaction of the transaction package."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from identity.api.plugins import Measurement, PoolUsage
from identity.instrumentation import measure_duration
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.plugins.sql.errors import translate_error
from identity.storage.errors import StorageUnavailable
from identity.storage.transaction_participant import TransactionParticipant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction, ITransactionManager

    from identity.plugins.sql.connection import DatabaseConnection

#: Pool name in metrics.
_WRITE_POOL_NAME = "writing"
ABORTED_MESSAGE = "The database has given this transaction up."


class WriteTransaction(ABC):
    """The transaction of one writer. It ends once; later calls do nothing."""

    connection: "DatabaseConnection"

    @abstractmethod
    def commit(self) -> None:
        """Return once everything written is durable. Raises StorageUnavailable; then nothing was committed."""

    @abstractmethod
    def roll_back(self) -> None:
        """Undo everything written. Raises StorageUnavailable if others' uncommitted writes that the writer has seen
        were lost, too."""


class Writer(ABC):
    """How a process writes, using the connections of this pool."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool

    @abstractmethod
    def begin_transaction(self) -> WriteTransaction:
        """Begin a transaction as soon as a connection is available. Raises StorageUnavailable."""

    def close(self) -> None:
        self.pool.close()

    @property
    def usage(self) -> PoolUsage:
        return self.pool.usage(_WRITE_POOL_NAME)


class SeparateCommitWriter(Writer):
    """Concurrent writers, each with its own connection and commit, for a database server. The server groups the commits
    of many connections by itself."""

    def begin_transaction(self) -> WriteTransaction:
        """A transaction at once, unless all connections are in use. The driver begins it with the first statement."""
        return _SeparateTransaction(self.pool, self.pool.acquire())


class _SeparateTransaction(WriteTransaction):
    def __init__(self, pool: ConnectionPool, connection: "DatabaseConnection") -> None:
        self.connection = connection
        self._pool = pool
        self._is_over = False

    def commit(self) -> None:
        if self.connection.is_aborted_by_server:
            raise StorageUnavailable(ABORTED_MESSAGE)
        try:
            with measure_duration(Measurement.STATEMENT, "COMMIT"):
                self.connection.driver.commit()
        except self.connection.driver_errors as error:
            raise translate_error(self.connection.wrap_error(error)) from error
        self._release_connection()

    def roll_back(self) -> None:
        if self._is_over:
            return
        self.connection.roll_back()
        self._release_connection()

    def _release_connection(self) -> None:
        self._is_over = True
        self._pool.release(self.connection)


class SqlTransactionParticipant(TransactionParticipant):
    """A database transaction that ends with the manager's current one, in one phase like zope.sqlalchemy, but without a
    session. Its statements have run before; the vote commits. zope.sqlalchemy requires an ORM session. It imports the
    ORM and the drivers of all databases, a tenth of the startup time, and its session without objects costs as much as
    the rest of a transaction."""

    def __init__(self, write_transaction: WriteTransaction, transactions: "ITransactionManager") -> None:
        super().__init__(transactions)
        self._write_transaction = write_transaction
        transaction = transactions.get()
        write_transaction.connection.transaction = transaction
        try:
            transaction.join(self)
        except BaseException:
            write_transaction.roll_back()
            raise

    def sortKey(self) -> str:  # noqa: N802 - the name is given by the interface
        """Among the last: it commits in its vote, when all others have agreed."""
        return f"~identity.sql:{id(self)}"

    def abort(self, transaction: "ITransaction") -> None:
        self._write_transaction.roll_back()

    def tpc_vote(self, transaction: "ITransaction") -> None:
        self._write_transaction.commit()

    tpc_abort = abort
