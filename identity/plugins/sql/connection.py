"""One open connection, as SQLAlchemy and as the driver has it."""

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from identity.instrumentation import STATEMENT, with_measured_duration
from identity.plugins.sql.settings import POSTGRESQL
from identity.transaction_manager import has_one_participant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction

    from identity.plugins.sql.query_batching import QueryBatches

#: What psycopg calls a connection without a transaction; it begins one with the next statement.
_TRANSACTION_IDLE = 0


class DatabaseConnection:
    """Made once for each connection, and kept as long as that is open: nothing is made for each use."""

    #: True at a node of several that all take writes, where a lock of what is read holds at this node alone.
    is_galera_node = False
    #: What is about to be executed by connections that are like this one, if greenlets share their statements.
    query_batches: "QueryBatches | None" = None
    #: What this connection writes for.
    transaction: "ITransaction | None" = None

    def __init__(self, connection: Connection) -> None:
        self.core = connection
        self.dialect = connection.dialect
        driver: Any = connection.connection.dbapi_connection
        self.driver = driver
        self.driver_errors: Any = connection.dialect.loaded_dbapi.Error
        # To make one of psycopg's cursors is a third of a short statement. One of SQLite's holds on to what it reads:
        # there each statement has its own.
        self.execute: Any = with_measured_duration(
            STATEMENT, driver.execute if self.is_sqlite else driver.cursor().execute
        )
        #: True if it must not be used again.
        self.is_broken = False

    @property
    def is_sqlite(self) -> bool:
        """True if there is no server."""
        return self.dialect.name == "sqlite"

    @property
    def socket_descriptor(self) -> int:
        """The number of the socket to the server."""
        return int(self.driver.fileno())

    @property
    def in_transaction(self) -> bool:
        """True once a transaction of PostgreSQL has begun, until it is over."""
        return bool(self.driver.pgconn.transaction_status != _TRANSACTION_IDLE)

    @property
    def commits_alone(self) -> bool:
        """True if no other participant of the transaction can still refuse its commit."""
        return self.transaction is not None and has_one_participant(self.transaction)

    @property
    def is_aborted_by_server(self) -> bool:
        """True if the server would not commit what was written, and would not say so either."""
        return self.driver.info.transaction_status.name in ("INERROR", "UNKNOWN")

    @contextmanager
    def autocommit(self) -> Iterator[None]:
        """Around one statement, which PostgreSQL then commits with it: to begin a transaction and to commit it would be
        two questions more. Where one has begun, and elsewhere, the statement is part of it."""
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
        """Give words without parameters to the driver. Raises SQLAlchemyError."""
        try:
            self.execute(sql)
        except self.driver_errors as error:
            raise self.wrap_error(error) from error

    def allow_slow_reader(self) -> None:
        """Have the server wait for a reader who takes what is read bit by bit."""

    def roll_back(self) -> None:
        """End what the driver began; whoever asks for it has an error already, that says more than another one."""
        try:
            self.driver.rollback()
        except self.driver_errors:
            self.is_broken = True

    def wrap_error(self, error: Any) -> DBAPIError:
        """What SQLAlchemy makes of a driver's error; a dead connection is never used again."""
        if self.dialect.is_disconnect(error, self.driver, None):
            self.is_broken = True
        wrapped: DBAPIError = DBAPIError.instance(None, None, error, self.driver_errors, dialect=self.dialect)
        return wrapped

    def has_unread_data(self) -> bool:
        """True if the server of the database has said something unasked; SQLite has none."""
        if self.is_sqlite:
            return False
        poll = select.poll()
        try:
            poll.register(self.socket_descriptor, select.POLLIN)
        except (self.driver_errors, AttributeError, ValueError):
            # It is gone already.
            return True
        return bool(poll.poll(0))

    @property
    def is_usable(self) -> bool:
        """False if it was lost, whichever of us has seen it."""
        return not (self.is_broken or self.core.invalidated)

    def close(self) -> None:
        """Close it, whatever state it is in."""
        # Marked first: nothing is said to a server that may be gone.
        with suppress(SQLAlchemyError):
            self.core.invalidate()
        with suppress(SQLAlchemyError):
            self.core.close()
