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
from typing import Any, NamedTuple

from sqlalchemy import Connection

from identity import watching
from identity.log_format import OnceAMinute
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.errors import FAILURES, STANDBY_URL_SETTING, translated, translating
from identity.plugins.sql.pool import Pool
from identity.storage.errors import StorageError
from identity.watching import Load

log = logging.getLogger(__name__)
log.addFilter(OnceAMinute())

#: Seconds after which a server is asked anew.
_INTERVAL = 1.0
_NEVER = float("-inf")

#: All that anybody may know to be committed was inserted before this position. The name of a file of the log begins
#: with the timeline. A standby refuses this.
_PRIMARY = """
SELECT (SELECT system_identifier FROM pg_control_system()), current_database(),
    pg_current_wal_insert_lsn() - '0/0'::pg_lsn, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
"""
#: Positions of different timelines say nothing of each other. None of these three numbers is ahead of what can be
#: replayed; the first one, which changes soonest, is shown to pg_read_all_stats alone.
_STANDBY = """
SELECT (SELECT system_identifier FROM pg_control_system()), current_database(),
    pg_last_wal_replay_lsn() - '0/0'::pg_lsn, pg_is_in_recovery(), greatest(
        (SELECT received_tli FROM pg_stat_wal_receiver),
        (SELECT timeline_id FROM pg_control_checkpoint()),
        (SELECT min_recovery_end_timeline FROM pg_control_recovery())
    )
"""


class Unfit(StorageError):
    """The server is not a standby of the primary."""


class Mark(NamedTuple):
    """Where the primary was at a moment of this process's own, or just after it."""

    at: float
    server: tuple[object, ...]
    position: int
    timeline: int

    @classmethod
    def asked(cls, connection: DatabaseConnection) -> "Mark":
        """By a connection to the primary. Raises SQLAlchemyError."""
        at = time.monotonic()
        *server, position, timeline = _row(connection, _PRIMARY)
        return cls(at, tuple(server), int(position), int(timeline, 16))


class StandbyConnection(DatabaseConnection):
    """A connection to a standby."""

    #: When it was asked last, and the moment since which nothing is missing there that was committed before.
    asked_at = _NEVER
    complete_at = _NEVER

    def ask(self, marks: tuple[Mark, ...]) -> None:
        """Find out which mark its server has come to; the latest one is the first. Raises SQLAlchemyError, Unfit."""
        self.asked_at = time.monotonic()
        *server, position, is_standby, timeline = _row(self, _STANDBY)
        if not is_standby:
            raise Unfit("it is no standby, or not any longer.")
        if tuple(server) != marks[0].server:
            raise Unfit("it is not a standby of the server of identity.plugin.sql.url, or has another database.")
        reached = (one.at for one in marks if one.position <= int(position or 0) and one.timeline <= timeline)
        self.complete_at = max(self.complete_at, next(reached, _NEVER))


class Standby:
    """The standby, or several behind one URL."""

    def __init__(self, primary: Pool, pool: Pool, staleness: timedelta) -> None:
        self._primary = primary
        self._pool = pool
        self._staleness = staleness.total_seconds()
        self._marks: tuple[Mark, ...] = ()
        #: True while nobody is to wait for it; it is found out in the background whether it is back.
        self._is_away = True
        self._next_look = _NEVER
        self._looks = Lock()
        self._background = ThreadPoolExecutor(1, "identity-standby")

    @property
    def load(self) -> Load:
        """How many connections are in use, and how many wait for one."""
        return self._pool.load("standby")

    def lend(self) -> StandbyConnection | None:
        """A connection by which nothing is missing that was committed longer ago than is allowed; None if there is none
        at this moment."""
        now = time.monotonic()
        if now >= self._next_look and self._looks.acquire(blocking=False):
            self._next_look = now + _INTERVAL
            self._background.submit(self._look)
        if self._is_away:
            return None
        try:
            connection = self._asked()
        except StorageError as problem:
            self._is_away = True
            log.warning("the standby is not read from: %s", problem)
            return None
        age = time.monotonic() - connection.complete_at
        if age < self._staleness:
            watching.aged(watching.STANDBY, age)
            return connection
        self.take_back(connection)
        log.warning("that the standby has what the primary has is not known for the last %g s", self._staleness)
        return None

    def take_back(self, connection: DatabaseConnection) -> None:
        """What was lent."""
        if not connection.usable:
            self._is_away = True
        self._pool.give_back(connection)

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection, however far behind its server is. Raises SQLAlchemyError, StorageError."""
        connection = self._pool.take()
        try:
            yield connection.core
        finally:
            self._pool.give_back(connection)

    def close(self) -> None:
        """Close what nobody uses now."""
        self._background.shutdown(wait=False, cancel_futures=True)
        self._pool.close()

    def problem(self) -> str | None:
        """What an operator has to mend, as a sentence; None if all is well."""
        try:
            self._mark()
        except StorageError as problem:
            return f"It cannot be compared with the primary, the server of identity.plugin.sql.url: {problem}"
        try:
            connection = self._asked()
        except StorageError as problem:
            return f"Its server cannot be read from: {problem}"
        age = time.monotonic() - connection.complete_at
        self.take_back(connection)
        return None if age < self._staleness else "It has not come to where the primary is."

    def _asked(self) -> StandbyConnection:
        """A connection that was asked lately. Raises StorageError."""
        try:
            connection: Any = self._pool.take()
        except FAILURES as error:
            raise translated(error, STANDBY_URL_SETTING) from error
        try:
            if time.monotonic() - connection.asked_at >= _INTERVAL:
                connection.ask(self._marks)
        except BaseException as error:
            # The next one may lead to another server.
            connection.broken = True
            self._pool.give_back(connection)
            raise translated(error) if isinstance(error, FAILURES) else error from None
        return connection  # type: ignore[no-any-return]

    def _look(self) -> None:
        """Find out where the primary is, and whether a standby that was away is back."""
        try:
            with suppress(StorageError):
                self._mark()
            if self._is_away and self._marks:
                self.take_back(self._asked())
                self._is_away = False
        except StorageError as problem:
            log.warning("the standby is not read from: %s", problem)
        finally:
            self._looks.release()

    def _mark(self) -> None:
        """Know where the primary is now. Raises StorageError."""
        with translating():
            connection = self._primary.take()
            try:
                mark = Mark.asked(connection)
            finally:
                self._primary.give_back(connection)
        self._marks = (mark, *(one for one in self._marks if mark.at - one.at < self._staleness))


def _row(connection: DatabaseConnection, words: str) -> Any:
    """The row that the server answers with. Raises SQLAlchemyError."""
    try:
        return connection.execute(words).fetchone()
    except connection.failures as error:
        raise connection.failure(error) from error
