"""The backend's part in a transaction, by zope.sqlalchemy.

A module of its own, imported by the first write: zope.sqlalchemy brings the drivers of all databases along, which no
start needs.
"""

import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import SQLAlchemyError
from zope.sqlalchemy.datamanager import STATUS_CHANGED, SessionDataManager

from identity.plugins.sql.errors import translated
from identity.plugins.sql.pool import give_back
from identity.storage.errors import Unavailable

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager


def join(connection: Connection, transactions: "ITransactionManager") -> None:
    """Begin a database transaction that ends with the current transaction of the manager."""
    _Joined(_CoreSession(connection), transactions)


class _CoreSession:
    """A transaction of SQLAlchemy Core in the shape in which zope.sqlalchemy expects a session.

    Nothing here is mapped to classes, and an ORM session without objects costs as much again as the rest of a
    transaction.
    """

    twophase = False
    expire_on_commit = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        try:
            self._transaction = connection.begin()
        except BaseException:
            give_back(connection)
            raise

    def get_transaction(self) -> RootTransaction:
        """The transaction that is to be committed."""
        return self._transaction

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Give the connection back; what was not committed is rolled back."""
        give_back(self.connection)


class _Joined(SessionDataManager):  # type: ignore[misc]
    """Our part in a transaction; says in the port's words why a commit failed.

    It joins as changed, since Core statements leave no trace in a session. Joining by hand needs no event listeners, so
    any number of transaction managers can be used.
    """

    def __init__(self, session: _CoreSession, transactions: "ITransactionManager") -> None:
        self._connection = session.connection
        super().__init__(session, STATUS_CHANGED, transactions)

    def tpc_vote(self, transaction: object) -> None:
        """Commit; the last moment at which other participants can still stop it has passed."""
        if _is_broken(self._connection):
            raise Unavailable("The database has given this transaction up.")
        try:
            super().tpc_vote(transaction)
        except SQLAlchemyError as error:
            raise translated(error) from error


def _is_broken(connection: Connection) -> bool:
    """True if an earlier failure ended the transaction: a commit would then do nothing, and say nothing."""
    if connection.closed or connection.invalidated:
        return True
    driver: Any = connection.connection.dbapi_connection
    if isinstance(driver, sqlite3.Connection):
        return not driver.in_transaction
    return driver.info.transaction_status.name in ("INERROR", "UNKNOWN")
