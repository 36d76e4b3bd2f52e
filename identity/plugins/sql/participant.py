"""The backend's part in a transaction."""

import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from identity.plugins.sql.errors import translated
from identity.plugins.sql.pool import give_back
from identity.storage.errors import Unavailable
from identity.storage.participant import Participant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction, ITransactionManager


class SqlParticipant(Participant):
    """A database transaction that ends with the current transaction of the manager, in one phase as zope.sqlalchemy has
    it, and without a session. Its statements have run before; the vote commits.

    zope.sqlalchemy is for whoever brings an ORM session. It imports the ORM and the drivers of all databases, a tenth
    of a start, and its session without objects costs as much again as the rest of a transaction.
    """

    def __init__(self, connection: Connection, transactions: "ITransactionManager") -> None:
        """Begin; raises SQLAlchemyError, with the connection given back."""
        super().__init__(transactions)
        self._connection = connection
        try:
            self._transaction = connection.begin()
            transactions.get().join(self)
        except BaseException:
            give_back(connection)
            raise

    def sortKey(self) -> str:  # noqa: N802 - the name is given by the interface
        """Among the last: the commit is made at the vote, when all others have agreed."""
        return f"~identity.sql:{id(self)}"

    def abort(self, transaction: "ITransaction") -> None:
        """Undo all that is not committed."""
        give_back(self._connection)

    def tpc_vote(self, transaction: "ITransaction") -> None:
        """Commit; the last moment at which other participants can still stop it has passed. Raises Unavailable."""
        if _is_broken(self._connection):
            raise Unavailable("The database has given this transaction up.")
        try:
            self._transaction.commit()
        except SQLAlchemyError as error:
            raise translated(error) from error
        give_back(self._connection)

    tpc_abort = abort


def _is_broken(connection: Connection) -> bool:
    """True if an earlier failure ended the transaction: a commit would then do nothing, and say nothing."""
    if connection.closed or connection.invalidated:
        return True
    driver: Any = connection.connection.dbapi_connection
    if isinstance(driver, sqlite3.Connection):
        return not driver.in_transaction
    return driver.info.transaction_status.name in ("INERROR", "UNKNOWN")
