"""An open connection, with SQLAlchemy's and the driver's objects."""

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from identity.api.plugins import Measurement
from identity.instrumentation import with_measured_duration
from identity.plugins.sql.settings import POSTGRESQL
from identity.transaction_manager import has_one_participant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction

    from identity.plugins.sql.query_batching import QueryBatches

#: psycopg's status of a connection without a transaction; the next statement begins one.
_TRANSACTION_IDLE = 0


class DatabaseConnection:
    """Created once per connection and kept while it is open, so that using it creates no objects."""

    #: True on a node of a Galera cluster, where read locks are local to the node.
    is_galera_node = False
    #: Batches shared by connections of the same kind, if greenlets share statements.
    query_batches: "QueryBatches | None" = None
    #: The transaction that this connection writes for.
    transaction: "ITransaction | None" = None

    def __init__(self, connection: Connection) -> None:
        self.core = connection
        self.dialect = connection.dialect
        driver: Any = connection.connection.dbapi_connection
        self.driver = driver
        self.driver_errors: Any = connection.dialect.loaded_dbapi.Error
        # Creating a psycopg cursor takes a third of a short statement. SQLite's cursors keep their results: there each
        # statement has its own.
        self.execute: Any = with_measured_duration(
            Measurement.STATEMENT, driver.execute if self.is_sqlite else driver.cursor().execute
        )
        #: True if it must not be used again.
        self.is_broken = False

    @property
    def is_sqlite(self) -> bool:
        return self.dialect.name == "sqlite"

    @property
    def socket_descriptor(self) -> int:
        return int(self.driver.fileno())

    @property
    def in_transaction(self) -> bool:
        """True while a PostgreSQL transaction is open."""
        return bool(self.driver.pgconn.transaction_status != _TRANSACTION_IDLE)

    @property
    def commits_alone(self) -> bool:
        """True if no other participant of the transaction can still refuse its commit."""
        return self.transaction is None or has_one_participant(self.transaction)

    @property
    def is_aborted_by_server(self) -> bool:
        """True if the server would silently discard the writes at the commit."""
        return self.driver.info.transaction_status.name in ("INERROR", "UNKNOWN")

    @contextmanager
    def autocommit(self) -> Iterator[None]:
        """Run one statement that PostgreSQL commits with it, which saves two round trips. Within an open transaction,
        and in other databases, the statement is part of the transaction."""
        if self.dialect.name != POSTGRESQL or self.in_transaction:
            yield
            return
        self.driver.autocommit = True
        try:
            yield
        finally:
            try:
                self.driver.autocommit = False
            except self.driver_errors:
                self.is_broken = True

    def execute_raw(self, sql: str) -> None:
        """Send SQL without parameters to the driver. Raises SQLAlchemyError."""
        try:
            self.execute(sql)
        except self.driver_errors as error:
            raise self.wrap_error(error) from error

    def allow_slow_reader(self) -> None:
        """Let the server wait for a reader who processes results slowly."""

    def roll_back(self) -> None:
        """Roll back; errors are ignored, because the caller already has a more relevant one."""
        try:
            self.driver.rollback()
        except self.driver_errors:
            self.is_broken = True

    def wrap_error(self, error: Any) -> DBAPIError:
        """SQLAlchemy's exception for a driver's error; a dead connection is never used again."""
        if self.dialect.is_disconnect(error, self.driver, None):
            self.is_broken = True
        wrapped: DBAPIError = DBAPIError.instance(None, None, error, self.driver_errors, dialect=self.dialect)
        return wrapped

    def has_unread_data(self) -> bool:
        """True if the database server has sent an unsolicited message; False for SQLite."""
        if self.is_sqlite:
            return False
        poll = select.poll()
        try:
            poll.register(self.socket_descriptor, select.POLLIN)
        except (self.driver_errors, AttributeError, ValueError):
            # Already closed.
            return True
        return bool(poll.poll(0))

    @property
    def is_usable(self) -> bool:
        return not (self.is_broken or self.core.invalidated)

    def close(self) -> None:
        """Close it in any state."""
        # Marked as broken first, so that nothing is sent to a server that may be gone.
        with suppress(SQLAlchemyError):
            self.core.invalidate()
        with suppress(SQLAlchemyError):
            self.core.close()
