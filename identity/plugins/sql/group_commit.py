"""Group commit: how a process writes to SQLite.

SQLite has one writer at a time, and a commit waits for the disk. Greenlets that are ready at the same time
(``identity.concurrency``) therefore share a database transaction and its commit:

1. A greenlet that is about to write first lets all others run, so that they finish their reads and signatures before
   one of them holds the lock.
2. Then each in turn has the connection: its writes follow a savepoint, so that an error undoes only its own writes.
3. At the vote of its transaction it lets all others run again. The first that continues commits for all. Only after
   that, each sends its response and calls observers. If the commit fails, it fails for all of them.

A thread commits on its own, as its transaction may take long: an open group is committed when it begins.
"""

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from identity.api.plugins import Measurement, run_in_executor
from identity.concurrency import Event, in_greenlet, sleep
from identity.instrumentation import measure_duration
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.plugins.sql.errors import DATABASE_ERRORS, translate_error
from identity.plugins.sql.write_transactions import ABORTED_MESSAGE, Writer, WriteTransaction
from identity.storage.errors import StorageError, StorageUnavailable

if TYPE_CHECKING:
    from identity.plugins.sql.connection import DatabaseConnection

#: Maximum number of writers per commit.
MAX_GROUP_SIZE = 64
#: Seconds between attempts to get a lock that another process holds. SQLite's own handler backs off, so that a busy
#: process would keep others waiting until they time out.
_LOCK_POLL_SECONDS = 0.002
#: Commits slower than this many seconds run in a thread, so that the loop continues. On a fast disk that would cost a
#: fifth more than the commit itself.
_SLOW_COMMIT_SECONDS = 0.001


def execute_when_unlocked(
    driver: sqlite3.Connection, sql: str, wait: float, pause: Callable[[float], None] = time.sleep
) -> None:
    """Execute a statement, again and again for up to ``wait`` seconds while the database is locked. Raises
    sqlite3.OperationalError."""
    give_up_at = time.monotonic() + wait
    while True:
        try:
            driver.execute(sql)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up_at:
                raise
            pause(_LOCK_POLL_SECONDS)
        else:
            return


class _CommitGroup:
    """Writers that share a commit."""

    __slots__ = ("_finished", "failure", "size")

    def __init__(self) -> None:
        #: Number of writers waiting for the commit.
        self.size = 0
        self.failure: StorageError | None = None
        self._finished = Event()

    @property
    def is_finished(self) -> bool:
        return self._finished.is_set()

    def wait(self) -> None:
        self._finished.wait()

    def finish(self, failure: StorageError | None) -> None:
        self.failure = failure
        self._finished.set()


class GroupCommitWriter(Writer):
    """The only write connection of a process, used by one writer at a time. ``is_grouping`` says whether writers share
    commits, ``wait`` how long one waits for writers of other processes."""

    def __init__(self, pool: ConnectionPool, *, wait: timedelta, is_grouping: bool = True) -> None:
        super().__init__(pool)
        self._wait = wait.total_seconds()
        self._is_grouping = is_grouping
        self._group: _CommitGroup | None = None
        #: True if the last commit was slow.
        self._is_slow = False

    def begin_transaction(self) -> WriteTransaction:
        shares = self._is_grouping and in_greenlet()
        if shares:
            sleep(0)
        connection = self.pool.acquire()
        try:
            if not shares:
                self._commit_group(connection)
            group = self._join_group(connection)
            if group.size:
                connection.execute_raw("SAVEPOINT writer")
        except BaseException as error:
            self._release_connection(connection)
            if isinstance(error, DATABASE_ERRORS):
                raise translate_error(error) from error
            raise
        return _GroupedTransaction(self, connection, group, shares=shares)

    def commit_transaction(self, transaction: "_GroupedTransaction") -> None:
        """Return once the transaction's writes are committed. Raises StorageUnavailable."""
        connection, group = transaction.connection, transaction.group
        try:
            if transaction.follows_others:
                connection.execute_raw("RELEASE writer")
            group.size += 1
            if not transaction.is_grouped or group.size >= MAX_GROUP_SIZE:
                self._commit_group(connection)
        except DATABASE_ERRORS as error:
            self._fail_group(group, translate_error(error))
            self._roll_back(connection)
        finally:
            self._release_connection(connection)
        self._wait_for_commit(group)

    def roll_back_transaction(self, transaction: "_GroupedTransaction") -> None:
        """Undo the transaction's writes. Raises StorageUnavailable if the earlier writers of the group, whose writes it
        has seen, fail."""
        connection, group = transaction.connection, transaction.group
        try:
            if transaction.follows_others:
                connection.execute_raw("ROLLBACK TO writer")
                connection.execute_raw("RELEASE writer")
            else:
                self._fail_group(group, StorageUnavailable(ABORTED_MESSAGE))
                self._roll_back(connection)
        except DATABASE_ERRORS as error:
            self._fail_group(group, translate_error(error))
            self._roll_back(connection)
        finally:
            self._release_connection(connection)
        if transaction.follows_others:
            self._wait_for_commit(group)

    def _join_group(self, connection: "DatabaseConnection") -> _CommitGroup:
        """The open group, or a new one."""
        if self._group is not None and connection.driver.in_transaction:
            return self._group
        if self._group is not None:
            self._fail_group(self._group, StorageUnavailable(ABORTED_MESSAGE))
        try:
            # At once: a read transaction that turned into a write would fail instead of waiting.
            execute_when_unlocked(connection.driver, "BEGIN IMMEDIATE", self._wait, sleep)
        except sqlite3.OperationalError as error:
            raise translate_error(error) from error
        self._group = _CommitGroup()
        return self._group

    def _release_connection(self, connection: "DatabaseConnection") -> None:
        """Pass the connection to the next writer; uncommitted writes of a broken one are lost."""
        if not connection.is_usable and self._group is not None:
            self._fail_group(self._group, StorageUnavailable(ABORTED_MESSAGE))
        self.pool.release(connection)

    def _wait_for_commit(self, group: _CommitGroup) -> None:
        """Return once any writer has committed the group. Raises StorageUnavailable if that fails."""
        sleep(0)
        while not group.is_finished:
            connection = self.pool.acquire_idle()
            if connection is None:
                # The connection's present user came later: a thread, which commits the group when it begins, or
                # another writer of the group, which reaches this loop, too.
                group.wait()
            else:
                self._commit_group(connection)
                self._release_connection(connection)
        if group.failure is not None:
            raise StorageUnavailable(str(group.failure)) from group.failure

    def _commit_group(self, connection: "DatabaseConnection") -> None:
        """Commit for all waiting writers, if any, and store the outcome in the group."""
        group, self._group = self._group, None
        if group is None:
            return
        try:
            with measure_duration(Measurement.STATEMENT, "COMMIT"):
                self._execute_commit(connection)
        except sqlite3.Error as error:
            self._roll_back(connection)
            group.finish(translate_error(error))
        else:
            group.finish(None)

    def _execute_commit(self, connection: "DatabaseConnection") -> None:
        began = time.monotonic()
        if self._is_slow and in_greenlet():
            run_in_executor(_commit_executor(), partial(connection.driver.execute, "COMMIT"))
        else:
            connection.driver.execute("COMMIT")
        self._is_slow = time.monotonic() - began > _SLOW_COMMIT_SECONDS

    def _roll_back(self, connection: "DatabaseConnection") -> None:
        """Leave no transaction open; SQLite may have ended it by itself."""
        try:
            if connection.driver.in_transaction:
                connection.driver.execute("ROLLBACK")
        except sqlite3.Error:
            connection.is_broken = True

    def _fail_group(self, group: _CommitGroup, failure: StorageError) -> None:
        if not group.is_finished:
            group.finish(failure)
        if self._group is group:
            self._group = None


class _GroupedTransaction(WriteTransaction):
    def __init__(
        self, writer: GroupCommitWriter, connection: "DatabaseConnection", group: _CommitGroup, *, shares: bool
    ) -> None:
        self.connection = connection
        self.group = group
        self.is_grouped = shares
        #: True if others have written before in the same database transaction.
        self.follows_others = group.size > 0
        self._writer = writer
        self._is_over = False

    def commit(self) -> None:
        if self._is_over:
            raise StorageUnavailable(ABORTED_MESSAGE)
        self._is_over = True
        self._writer.commit_transaction(self)

    def roll_back(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._writer.roll_back_transaction(self)


@cache
def _commit_executor() -> Executor:
    return ThreadPoolExecutor(1, "identity-committing")
