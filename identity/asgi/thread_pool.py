"""A small thread pool for blocking requests, with a short queue."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from identity.concurrency import GreenletPool, await_, current_greenlet_pool, in_greenlet

Result = TypeVar("Result")

#: The number of concurrent requests for pages and the management API, and of those that wait for a thread.
MAX_REQUEST_THREADS, MAX_QUEUED_REQUESTS = 4, 32
#: The same for endpoints that cannot wait in the event loop.
MAX_ENDPOINT_THREADS, MAX_QUEUED_ENDPOINT_REQUESTS = 8, 1000
#: Threads that wait for a hash, a document or another server come on top; other pools limit those.
_MAX_THREADS = 512


#: The thread's pool, unless it has released its slot.
_thread_local = threading.local()


@contextmanager
def released_slot() -> Iterator[None]:
    """Release the slot of a pool thread or greenlet while it waits for something slow."""
    pool: RequestThreadPool | None = getattr(_thread_local, "pool", None)
    pool_in_use: RequestThreadPool | GreenletPool | None = current_greenlet_pool() or pool
    if pool_in_use is None:
        yield
        return
    _thread_local.pool = None
    pool_in_use.release_slot()
    try:
        yield
    finally:
        pool_in_use.reacquire_slot()
        _thread_local.pool = pool


class ThreadPoolFull(Exception):
    """Too many requests wait for a thread."""


class RequestThreadPool:
    """Created in the event loop that submits the work."""

    def __init__(self, count: int, longest_queue: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._count = count
        self._longest_queue = longest_queue
        self._busy = 0
        #: The number of running functions.
        self.active_count = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._pool = ThreadPoolExecutor(_MAX_THREADS, "identity-request")

    async def run(self, function: Callable[[], Result], *, has_begun: bool = False) -> Result:
        """Run the function in a thread, with the caller's context variables.

        A function that has started runs to its end: cancelling this coroutine only drops its result. Raises
        ThreadPoolFull, unless the function continues something that ``has_begun``.
        """
        if self._busy < self._count and not self._waiters:
            self._busy += 1
        else:
            if len(self._waiters) >= self._longest_queue and not has_begun:
                raise ThreadPoolFull
            await self._wait_for_slot()
        self.active_count += 1
        ended: asyncio.Future[Result] = self._loop.create_future()
        context = copy_context()
        self._pool.submit(self._work, lambda: context.run(function), ended)
        return await ended

    def run_sync(self, function: Callable[[], Result]) -> Result:
        """The same for synchronous code: a greenlet waits for the thread, a thread calls the function itself."""
        if not in_greenlet():
            return function()
        context = copy_context()
        with released_slot():
            return await_(self.run(lambda: context.run(function)))

    def release_slot(self) -> None:
        self._loop.call_soon_threadsafe(self._free_slot)

    def reacquire_slot(self) -> None:
        """Take the slot back, even if another thread has it now."""
        self._loop.call_soon_threadsafe(self._occupy_slot)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=False)

    async def _wait_for_slot(self) -> None:
        turn = self._loop.create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free_slot()
            elif turn in self._waiters:
                self._waiters.remove(turn)
            raise

    def _work(self, function: Callable[[], Result], ended: "asyncio.Future[Result]") -> None:
        _thread_local.pool = self
        result: Any = None
        error: BaseException | None = None
        try:
            result = function()
        except BaseException as problem:
            error = problem
        self._loop.call_soon_threadsafe(self._finish, ended, result, error)

    def _finish(self, ended: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        self.active_count -= 1
        self._free_slot()
        if ended.done():
            return
        if error is None:
            ended.set_result(result)
        else:
            ended.set_exception(error)

    def _free_slot(self) -> None:
        self._busy -= 1
        while self._waiters and self._busy < self._count:
            turn = self._waiters.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)

    def _occupy_slot(self) -> None:
        self._busy += 1
