"""Transactions that write: how they begin and end, and how they take part in one of the transaction package."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from identity.instrumentation import STATEMENT, PoolUsage, measure_duration
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.plugins.sql.errors import translate_error
from identity.storage.errors import StorageUnavailable
from identity.storage.transaction_participant import TransactionParticipant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction, ITransactionManager

    from identity.plugins.sql.connection import DatabaseConnection

#: The name of the connections that write.
_WRITE_POOL_NAME = "writing"
ABORTED_MESSAGE = "The database has given this transaction up."


class WriteTransaction(ABC):
    """One writer's transaction. It ends once, and what is asked of it afterwards does nothing."""

    connection: "DatabaseConnection"

    @abstractmethod
    def commit(self) -> None:
        """Return when all that was written is on the disk. Raises StorageUnavailable, and then nothing of it is."""

    @abstractmethod
    def roll_back(self) -> None:
        """Take back all that was written.

        Raises StorageUnavailable if it turns out that what the writer has seen of others has not come to be either.
        """


class Writer(ABC):
    """How a process writes, by the connections of this pool."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool

    @abstractmethod
    def begin_transaction(self) -> WriteTransaction:
        """A transaction, as soon as there is a connection for it. Raises StorageUnavailable."""

    def close(self) -> None:
        """Close connections that are not in use now, and the others when their transactions end."""
        self.pool.close()

    @property
    def usage(self) -> PoolUsage:
        """How many connections are in use, and how many writers wait for one."""
        return self.pool.usage(_WRITE_POOL_NAME)


class SeparateCommitWriter(Writer):
    """Many writers at the same time, each with a connection and a commit of their own: a server.

    That groups the commits of many connections by itself.
    """

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
            with measure_duration(STATEMENT, "COMMIT"):
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
    """A database transaction that ends with the current one of the manager, in one phase as zope.sqlalchemy has it, and
    without a session. Its statements have run before; the vote commits.

    zope.sqlalchemy is for whoever brings an ORM session. It imports the ORM and the drivers of all databases, a tenth
    of a start, and its session without objects costs as much again as the rest of a transaction.
    """

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
        """Among the last: the commit is made at the vote, when all others have agreed."""
        return f"~identity.sql:{id(self)}"

    def abort(self, transaction: "ITransaction") -> None:
        """Undo all that is not committed. Raises StorageUnavailable if what it was judged by has not come to be."""
        self._write_transaction.roll_back()

    def tpc_vote(self, transaction: "ITransaction") -> None:
        """Commit; the last moment at which other participants can still stop it has passed. Raises
        StorageUnavailable."""
        self._write_transaction.commit()

    tpc_abort = abort
