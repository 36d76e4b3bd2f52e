"""One commit for many writers: how a process writes to SQLite.

SQLite has one writer at a time, and a commit waits for the disk. Greenlets that are ready at the same time
(``identity.concurrency``) therefore share a transaction of the database and its commit:

1. A greenlet that is about to write lets all others run first. So all of them have looked things up and signed before
   one holds the lock.
2. Then each in turn has the connection: its writes follow a savepoint, so that a refusal undoes its own writes alone.
3. At the vote of its transaction it lets all others run again. The first that continues commits for all. Each is
   answered, and calls observers, only after that. If the commit fails, it has failed for all of them.

A thread has a commit of its own, as its transaction may take long: what was open before is committed when it begins.
"""

import sqlite3
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from identity.concurrency import Event, in_greenlet, run_in_executor, sleep
from identity.plugins.sql.errors import FAILURES, translated
from identity.plugins.sql.pool import Pool
from identity.plugins.sql.write_transactions import GIVEN_UP, Writer, WriteTransaction
from identity.storage.errors import StorageError, Unavailable
from identity.watching import STATEMENT, timed

if TYPE_CHECKING:
    from identity.plugins.sql.connection import DatabaseConnection

#: How many writers share a commit at most.
MOST = 64
#: Seconds after which a writer asks anew for the lock that another process holds. SQLite itself asks less and less
#: often, so that a busy process would keep all others waiting until they give up.
_STEP = 0.002
#: Seconds of a commit after which the next one is left to a thread while the loop runs others. On a fast disk that
#: would cost a fifth more than the commit itself.
_SLOW = 0.001


class _Group:
    """Writers that share a commit."""

    __slots__ = ("_over", "failure", "size")

    def __init__(self) -> None:
        #: How many of them wait for the commit.
        self.size = 0
        self.failure: StorageError | None = None
        self._over = Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self) -> None:
        """Return when it is over."""
        self._over.wait()

    def end(self, failure: StorageError | None) -> None:
        """Let all of them continue."""
        self.failure = failure
        self._over.set()


class GroupCommit(Writer):
    """The one connection by which a process writes, given to one writer after the other.

    ``share`` says whether writers share commits, ``wait`` how long one waits for writers of other processes.
    """

    def __init__(self, pool: Pool, *, wait: timedelta, share: bool = True) -> None:
        super().__init__(pool)
        self._wait = wait.total_seconds()
        self._share = share
        self._group: _Group | None = None
        #: True if the last commit waited for its disk for long.
        self._is_slow = False

    def begin(self) -> WriteTransaction:
        """A transaction, after those that were asked for before. Raises Unavailable."""
        shares = self._share and in_greenlet()
        if shares:
            sleep(0)
        connection = self.pool.take()
        try:
            if not shares:
                self._commit(connection)
            group = self._joined(connection)
            if group.size:
                connection.send("SAVEPOINT writer")
        except BaseException as error:
            self._pass_on(connection)
            if isinstance(error, FAILURES):
                raise translated(error) from error
            raise
        return _GroupedTransaction(self, connection, group, shares=shares)

    def end(self, transaction: "_GroupedTransaction") -> None:
        """Return when what was written in the transaction is committed. Raises Unavailable."""
        connection, group = transaction.connection, transaction.group
        try:
            if transaction.behind_others:
                connection.send("RELEASE writer")
            group.size += 1
            if not transaction.shares or group.size >= MOST:
                self._commit(connection)
        except FAILURES as error:
            self._give_up(group, translated(error))
            self._roll_back(connection)
        finally:
            self._pass_on(connection)
        self._settle(group)

    def take_back(self, transaction: "_GroupedTransaction") -> None:
        """Undo what was written in it. Raises Unavailable if the writers whose writes it has seen fail."""
        connection, group = transaction.connection, transaction.group
        try:
            if transaction.behind_others:
                connection.send("ROLLBACK TO writer")
                connection.send("RELEASE writer")
            else:
                self._give_up(group, Unavailable(GIVEN_UP))
                self._roll_back(connection)
        except FAILURES as error:
            self._give_up(group, translated(error))
            self._roll_back(connection)
        finally:
            self._pass_on(connection)
        if transaction.behind_others:
            self._settle(group)

    def _joined(self, connection: "DatabaseConnection") -> _Group:
        """The group whose transaction is open, or a new one."""
        if self._group is not None and connection.driver.in_transaction:
            return self._group
        if self._group is not None:
            self._give_up(self._group, Unavailable(GIVEN_UP))
        self._begin(connection)
        self._group = _Group()
        return self._group

    def _begin(self, connection: "DatabaseConnection") -> None:
        """Take the write lock at once: a read that turned into a write would fail instead of waiting."""
        give_up_at = time.monotonic() + self._wait
        while True:
            try:
                connection.driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > give_up_at:
                    raise translated(error) from error
                sleep(_STEP)
            else:
                return

    def _pass_on(self, connection: "DatabaseConnection") -> None:
        """Let the next writer have the connection; what a broken one has not committed is lost."""
        if not connection.usable and self._group is not None:
            self._give_up(self._group, Unavailable(GIVEN_UP))
        self.pool.give_back(connection)

    def _settle(self, group: _Group) -> None:
        """Return when the group is committed, by whomever. Raises Unavailable if it is not."""
        sleep(0)
        while not group.is_over:
            connection = self.pool.take_idle()
            if connection is None:
                # Whoever has the connection now came after us: it is a thread, and commits as it begins, or another
                # one of the group, who comes here in the end.
                group.wait()
            else:
                self._commit(connection)
                self._pass_on(connection)
        if group.failure is not None:
            raise Unavailable(str(group.failure)) from group.failure

    def _commit(self, connection: "DatabaseConnection") -> None:
        """Commit for all that wait for it, if there are any; their group has the outcome."""
        group, self._group = self._group, None
        if group is None:
            return
        try:
            with timed(STATEMENT, "COMMIT"):
                self._write_to_disk(connection)
        except sqlite3.Error as error:
            self._roll_back(connection)
            group.end(translated(error))
        else:
            group.end(None)

    def _write_to_disk(self, connection: "DatabaseConnection") -> None:
        began = time.monotonic()
        if self._is_slow and in_greenlet():
            run_in_executor(_committing(), partial(connection.driver.execute, "COMMIT"))
        else:
            connection.driver.execute("COMMIT")
        self._is_slow = time.monotonic() - began > _SLOW

    def _roll_back(self, connection: "DatabaseConnection") -> None:
        """Leave no transaction open; SQLite may have ended it by itself."""
        try:
            if connection.driver.in_transaction:
                connection.driver.execute("ROLLBACK")
        except sqlite3.Error:
            connection.broken = True

    def _give_up(self, group: _Group, failure: StorageError) -> None:
        if not group.is_over:
            group.end(failure)
        if self._group is group:
            self._group = None


class _GroupedTransaction(WriteTransaction):
    def __init__(
        self, group_commit: GroupCommit, connection: "DatabaseConnection", group: _Group, *, shares: bool
    ) -> None:
        self.connection = connection
        self.group = group
        self.shares = shares
        #: True if others have written before in the same transaction.
        self.behind_others = group.size > 0
        self._group_commit = group_commit
        self._is_over = False

    def commit(self) -> None:
        if self._is_over:
            raise Unavailable(GIVEN_UP)
        self._is_over = True
        self._group_commit.end(self)

    def undo(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._group_commit.take_back(self)


@cache
def _committing() -> Executor:
    return ThreadPoolExecutor(1, "identity-committing")
