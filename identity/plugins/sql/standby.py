"""Reading from a standby of PostgreSQL, as long as it is known by how much it is behind.

A process asks the primary, at most once a second and only while somebody wants to read, how far its log has come; each
connection to a standby is asked, as seldom, how far its server has replayed that. A server that has come to where the
primary was at a moment shows all that was committed before this moment. So nothing depends on clocks of other machines,
and a standby that is cut off, paused or slow is found out by what it lacks. While the primary is away nothing new is
learned, and what was learned is too old in the end.

Whoever reads never waits for this: without an answer that is fresh enough the primary is asked.
"""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Lock
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection

from identity import instrumentation
from identity.instrumentation import PoolUsage
from identity.log_formatters import RepeatedMessageFilter
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.plugins.sql.errors import DATABASE_ERRORS, STANDBY_URL_SETTING, translate_error, translating
from identity.storage.errors import StorageError

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

#: Seconds after which a server is asked anew.
_POLL_SECONDS = 1.0
_NEVER = float("-inf")

#: All that anybody may know to be committed was inserted before this position. The name of a file of the log begins
#: with the timeline. A standby refuses this.
_PRIMARY_QUERY = """
SELECT (SELECT system_identifier FROM pg_control_system()), current_database(),
    pg_current_wal_insert_lsn() - '0/0'::pg_lsn, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
"""
#: Positions of different timelines say nothing of each other. None of these three numbers is ahead of what can be
#: replayed; the first one, which changes soonest, is shown to pg_read_all_stats alone.
_STANDBY_QUERY = """
SELECT (SELECT system_identifier FROM pg_control_system()), current_database(),
    pg_last_wal_replay_lsn() - '0/0'::pg_lsn, pg_is_in_recovery(), greatest(
        (SELECT received_tli FROM pg_stat_wal_receiver),
        (SELECT timeline_id FROM pg_control_checkpoint()),
        (SELECT min_recovery_end_timeline FROM pg_control_recovery())
    )
"""


class NotAStandby(StorageError):
    """The server is not a standby of the primary."""


class ReplicationPosition(NamedTuple):
    """Where the primary was at a moment of this process's own, or just after it."""

    read_at: float
    server: tuple[object, ...]
    position: int
    timeline: int

    @classmethod
    def read(cls, connection: DatabaseConnection) -> "ReplicationPosition":
        """By a connection to the primary. Raises SQLAlchemyError."""
        at = time.monotonic()
        *server, position, timeline = _fetch_row(connection, _PRIMARY_QUERY)
        return cls(at, tuple(server), int(position), int(timeline, 16))


class StandbyConnection(DatabaseConnection):
    """A connection to a standby."""

    #: When it was asked last, and the moment since which nothing is missing there that was committed before.
    lag_read_at = _NEVER
    caught_up_at = _NEVER

    def update_lag(self, positions: tuple[ReplicationPosition, ...]) -> None:
        """Find out which mark its server has come to; the latest one is the first. Raises SQLAlchemyError,
        NotAStandby."""
        self.lag_read_at = time.monotonic()
        *server, position, is_standby, timeline = _fetch_row(self, _STANDBY_QUERY)
        if not is_standby:
            raise NotAStandby("it is no standby, or not any longer.")
        if tuple(server) != positions[0].server:
            raise NotAStandby("it is not a standby of the server of identity.plugin.sql.url, or has another database.")
        reached = (
            replication_position.read_at
            for replication_position in positions
            if replication_position.position <= int(position or 0) and replication_position.timeline <= timeline
        )
        self.caught_up_at = max(self.caught_up_at, next(reached, _NEVER))


class StandbyPool:
    """The standby, or several behind one URL."""

    def __init__(self, primary: ConnectionPool, pool: ConnectionPool, staleness: timedelta) -> None:
        self._primary = primary
        self._pool = pool
        self._staleness = staleness.total_seconds()
        self._positions: tuple[ReplicationPosition, ...] = ()
        #: True while nobody is to wait for it; it is found out in the background whether it is back.
        self._is_unavailable = True
        self._next_poll_at = _NEVER
        self._poll_lock = Lock()
        self._background = ThreadPoolExecutor(1, "identity-standby")

    @property
    def usage(self) -> PoolUsage:
        """How many connections are in use, and how many wait for one."""
        return self._pool.usage("standby")

    def acquire_shared(self) -> StandbyConnection | None:
        """A connection by which nothing is missing that was committed longer ago than is allowed; None if there is none
        at this moment."""
        now = time.monotonic()
        if now >= self._next_poll_at and self._poll_lock.acquire(blocking=False):
            self._next_poll_at = now + _POLL_SECONDS
            self._background.submit(self._poll)
        if self._is_unavailable:
            return None
        try:
            connection = self._acquire_checked()
        except StorageError as problem:
            self._is_unavailable = True
            log.warning("the standby is not read from: %s", problem)
            return None
        age = time.monotonic() - connection.caught_up_at
        if age < self._staleness:
            instrumentation.record_lag(instrumentation.STANDBY_READ, age)
            return connection
        self.release_shared(connection)
        log.warning("that the standby has what the primary has is not known for the last %g s", self._staleness)
        return None

    def release_shared(self, connection: DatabaseConnection) -> None:
        """What was lent."""
        if not connection.is_usable:
            self._is_unavailable = True
        self._pool.release(connection)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection, however far behind its server is. Raises SQLAlchemyError, StorageError."""
        connection = self._pool.acquire()
        try:
            yield connection.core
        finally:
            self._pool.release(connection)

    def close(self) -> None:
        """Close what nobody uses now."""
        self._background.shutdown(wait=False, cancel_futures=True)
        self._pool.close()

    def find_problem(self) -> str | None:
        """What an operator has to mend, as a sentence; None if all is well."""
        try:
            self._read_position()
        except StorageError as problem:
            return f"It cannot be compared with the primary, the server of identity.plugin.sql.url: {problem}"
        try:
            connection = self._acquire_checked()
        except StorageError as problem:
            return f"Its server cannot be read from: {problem}"
        age = time.monotonic() - connection.caught_up_at
        self.release_shared(connection)
        return None if age < self._staleness else "It has not come to where the primary is."

    def _acquire_checked(self) -> StandbyConnection:
        """A connection that was asked lately. Raises StorageError."""
        try:
            connection = cast("StandbyConnection", self._pool.acquire())
        except DATABASE_ERRORS as error:
            raise translate_error(error, STANDBY_URL_SETTING) from error
        try:
            if time.monotonic() - connection.lag_read_at >= _POLL_SECONDS:
                connection.update_lag(self._positions)
        except BaseException as error:
            # The next one may lead to another server.
            connection.is_broken = True
            self._pool.release(connection)
            raise translate_error(error) if isinstance(error, DATABASE_ERRORS) else error from None
        return connection

    def _poll(self) -> None:
        """Find out where the primary is, and whether a standby that was away is back."""
        try:
            with suppress(StorageError):
                self._read_position()
            if self._is_unavailable and self._positions:
                self.release_shared(self._acquire_checked())
                self._is_unavailable = False
        except StorageError as problem:
            log.warning("the standby is not read from: %s", problem)
        finally:
            self._poll_lock.release()

    def _read_position(self) -> None:
        """Know where the primary is now. Raises StorageError."""
        with translating():
            connection = self._primary.acquire()
            try:
                mark = ReplicationPosition.read(connection)
            finally:
                self._primary.release(connection)
        self._positions = (
            mark,
            *(position for position in self._positions if mark.read_at - position.read_at < self._staleness),
        )


def _fetch_row(connection: DatabaseConnection, sql: str) -> Any:
    """The row that the server answers with. Raises SQLAlchemyError."""
    try:
        return connection.execute(sql).fetchone()
    except connection.driver_errors as error:
        raise connection.wrap_error(error) from error
