"""A connection pool that serves in the order of arrival.

SQLAlchemy's own lets a thread that has just given a connection back take it again before the one that waits has
woken up. Under load some threads then wait until they time out, worst of all for SQLite's single writer.
"""

import logging
import threading
from collections import deque
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.util.queue import Empty, Full, QueueCommon

from identity.plugins.sql.errors import translated

log = logging.getLogger(__name__)

Item = TypeVar("Item")


class _Waiter:
    """A thread that waits for an item; the lock is open once it is there."""

    __slots__ = ("item", "ready")

    def __init__(self) -> None:
        self.item: Any = None
        self.ready = threading.Lock()
        self.ready.acquire()


class FairQueue(QueueCommon[Item]):
    """Hands what is put in straight to whoever has waited longest; what nobody waits for is used last in, first out."""

    def __init__(self, maxsize: int = 0, use_lifo: bool = True) -> None:
        self.maxsize = maxsize
        # The pool asks for it when it is made anew; there is but one way here.
        self.use_lifo = use_lifo
        self._items: deque[Item] = deque()
        self._waiters: deque[_Waiter] = deque()
        self._mutex = threading.Lock()

    def empty(self) -> bool:
        """True if nothing lies ready."""
        return not self._items

    def full(self) -> bool:
        """True if nothing more is kept."""
        return 0 < self.maxsize <= len(self._items)

    def qsize(self) -> int:
        """How much lies ready."""
        return len(self._items)

    def put_nowait(self, item: Item) -> None:
        """Put an item in; raises Full."""
        self.put(item, False)

    def put(self, item: Item, block: bool = True, timeout: float | None = None) -> None:
        """Put an item in; raises Full, for the pool never waits here."""
        with self._mutex:
            if self._waiters:
                waiter = self._waiters.popleft()
                waiter.item = item
                waiter.ready.release()
            elif self.full():
                raise Full
            else:
                self._items.append(item)

    def get_nowait(self) -> Item:
        """Take an item; raises Empty."""
        return self.get(False)

    def get(self, block: bool = True, timeout: float | None = None) -> Item:
        """Take an item, when it is our turn; raises Empty if that takes too long."""
        with self._mutex:
            if self._items:
                return self._items.pop()
            if not block:
                raise Empty
            waiter = _Waiter()
            self._waiters.append(waiter)
        if not waiter.ready.acquire(timeout=-1 if timeout is None else timeout):
            with self._mutex:
                # It may have come at the last moment.
                if waiter.item is None:
                    self._waiters.remove(waiter)
                    raise Empty
        taken: Item = waiter.item
        return taken


class FairPool(QueuePool):
    """SQLAlchemy's pool over a fair queue."""

    _queue_class = FairQueue  # type: ignore[assignment]


def give_back(connection: Connection) -> None:
    """Give it back to the pool, whatever state it is in: what was not committed is rolled back.

    Never raises: whoever is done has an answer already, or an error that says more.
    """
    try:
        connection.close()
    except SQLAlchemyError as error:
        # SQLAlchemy has thrown the connection away.
        log.info("a transaction could not be rolled back: %s", translated(error))
