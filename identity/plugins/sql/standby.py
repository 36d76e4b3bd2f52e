"""Reads from a PostgreSQL standby whose lag is known.

A process reads the primary's WAL position at most once a second, and only while there are readers; for each
connection to a standby it reads, as rarely, which position its server has replayed. A server that has reached the
primary's position of a moment shows everything committed before that moment. So clocks of other machines do not
matter, and a standby that is disconnected, paused or slow is detected by what it lacks. While the primary is away
there are no new positions, and the known ones become too old.

Reads never wait for this: without a recent enough standby they use the primary.
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
from identity.api.plugins import PoolUsage, RepeatedMessageFilter
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.plugins.sql.errors import DATABASE_ERRORS, STANDBY_URL_SETTING, translate_error, translating
from identity.storage.errors import StorageError

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

#: Seconds between two reads of a server's position.
_POLL_SECONDS = 1.0
_NEVER = float("-inf")

#: Everything known to be committed was inserted before this position. The name of a WAL file begins with the timeline.
#: A standby refuses this query.
_PRIMARY_QUERY = """
SELECT (SELECT system_identifier FROM pg_control_system()), current_database(),
    pg_current_wal_insert_lsn() - '0/0'::pg_lsn, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
"""
#: Positions of different timelines cannot be compared. None of these three numbers is ahead of what can be replayed;
#: the first one, which changes soonest, is only visible to pg_read_all_stats.
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
    """The primary's position at or just after a moment of this process's clock."""

    read_at: float
    server: tuple[object, ...]
    position: int
    timeline: int

    @classmethod
    def read(cls, connection: DatabaseConnection) -> "ReplicationPosition":
        """Read it over a connection to the primary. Raises SQLAlchemyError."""
        at = time.monotonic()
        *server, position, timeline = _fetch_row(connection, _PRIMARY_QUERY)
        return cls(at, tuple(server), int(position), int(timeline, 16))


class StandbyConnection(DatabaseConnection):
    #: When the position was read last, and the moment before which nothing committed is missing.
    lag_read_at = _NEVER
    caught_up_at = _NEVER

    def update_lag(self, positions: tuple[ReplicationPosition, ...]) -> None:
        """Compare the server's position with these, of which the latest is the first. Raises SQLAlchemyError,
        NotAStandby."""
        self.lag_read_at = time.monotonic()
        *server, position, is_standby, timeline = _fetch_row(self, _STANDBY_QUERY)
        if not is_standby:
            raise NotAStandby("it is no standby, or not any longer.")
        if tuple(server) != positions[0].server:
            raise NotAStandby("it is not a standby of the server of identity.plugin.sql.url, or has another database.")
        reached = (
            item.read_at for item in positions if item.position <= int(position or 0) and item.timeline <= timeline
        )
        self.caught_up_at = max(self.caught_up_at, next(reached, _NEVER))


class StandbyPool:
    """The standby, or several behind one URL."""

    def __init__(self, primary: ConnectionPool, pool: ConnectionPool, staleness: timedelta) -> None:
        self._primary = primary
        self._pool = pool
        self._staleness = staleness.total_seconds()
        self._positions: tuple[ReplicationPosition, ...] = ()
        #: While True, callers do not wait for it; a background task checks whether it is back.
        self._is_unavailable = True
        self._next_poll_at = _NEVER
        self._poll_lock = Lock()
        self._background = ThreadPoolExecutor(1, "identity-standby")

    @property
    def usage(self) -> PoolUsage:
        return self._pool.usage("standby")

    def acquire_shared(self) -> StandbyConnection | None:
        """A connection on which nothing is missing that was committed longer ago than allowed; None if there is none at
        the moment."""
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
            instrumentation.record_lag(instrumentation.Measurement.STANDBY_READ, age)
            return connection
        self.release_shared(connection)
        log.warning("that the standby has what the primary has is not known for the last %g s", self._staleness)
        return None

    def release_shared(self, connection: DatabaseConnection) -> None:
        if not connection.is_usable:
            self._is_unavailable = True
        self._pool.release(connection)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection, whatever its lag. Raises SQLAlchemyError, StorageError."""
        connection = self._pool.acquire()
        try:
            yield connection.core
        finally:
            self._pool.release(connection)

    def close(self) -> None:
        self._background.shutdown(wait=False, cancel_futures=True)
        self._pool.close()

    def find_problem(self) -> str | None:
        """A problem for the operator, as a sentence; None if there is none."""
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
        """A connection whose position was read recently. Raises StorageError."""
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
        """Read the primary's position, and check whether a standby that was away is back."""
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
    """The row that the server returns. Raises SQLAlchemyError."""
    try:
        return connection.execute(sql).fetchone()
    except connection.driver_errors as error:
        raise connection.wrap_error(error) from error
