"""Threads: a small pool for what waits as threads do, with a short queue."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from identity.concurrency import Greenlets, await_, in_greenlet, own_greenlets

Result = TypeVar("Result")

#: How many requests for pages and the management API threads work on at the same time, and how many wait for a thread.
THREADS, LONGEST_QUEUE = 4, 32
#: The same for endpoints that cannot wait in the event loop.
ENDPOINT_THREADS, LONGEST_ENDPOINT_QUEUE = 8, 1000
#: Threads that wait for a hash, a document or another server come on top; pools of their own bound those.
_MOST_THREADS = 512


#: Of a thread: the pool to which it belongs, unless it has stepped aside.
_here = threading.local()


@contextmanager
def stepping_aside() -> Iterator[None]:
    """While a thread of a pool or a greenlet waits for something slow, another one works in its place."""
    pool: Threads | None = getattr(_here, "pool", None)
    place: Threads | Greenlets | None = own_greenlets() or pool
    if place is None:
        yield
        return
    _here.pool = None
    place.step_aside()
    try:
        yield
    finally:
        place.return_to_place()
        _here.pool = pool


class QueueFull(Exception):
    """Too many requests wait for a thread."""


class Threads:
    """Made in the event loop that hands them work."""

    def __init__(self, count: int, longest_queue: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._count = count
        self._longest_queue = longest_queue
        self._busy = 0
        #: Functions that have begun and not ended.
        self.working = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._pool = ThreadPoolExecutor(_MOST_THREADS, "identity-request")

    async def run(self, function: Callable[[], Result], *, has_begun: bool = False) -> Result:
        """What the function returns or raises in a thread, with the caller's context variables.

        Once begun it runs to its end: to cancel this coroutine only drops its result. Raises QueueFull, unless the
        function continues something that ``has_begun``.
        """
        if self._busy < self._count and not self._line:
            self._busy += 1
        else:
            if len(self._line) >= self._longest_queue and not has_begun:
                raise QueueFull
            await self._wait_in_line()
        self.working += 1
        ended: asyncio.Future[Result] = self._loop.create_future()
        context = copy_context()
        self._pool.submit(self._work, lambda: context.run(function), ended)
        return await ended

    def call(self, function: Callable[[], Result]) -> Result:
        """The same for synchronous code: a greenlet waits for it, a thread calls the function itself."""
        if not in_greenlet():
            return function()
        context = copy_context()
        with stepping_aside():
            return await_(self.run(lambda: context.run(function)))

    def step_aside(self) -> None:
        """Give the place of the calling thread away."""
        self._loop.call_soon_threadsafe(self._leave)

    def return_to_place(self) -> None:
        """Take it again, though another thread may have it now."""
        self._loop.call_soon_threadsafe(self._return)

    def close(self) -> None:
        """End the threads that have nothing to do."""
        self._pool.shutdown(wait=False, cancel_futures=False)

    async def _wait_in_line(self) -> None:
        turn = self._loop.create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            elif turn in self._line:
                self._line.remove(turn)
            raise

    def _work(self, function: Callable[[], Result], ended: "asyncio.Future[Result]") -> None:
        _here.pool = self
        result: Any = None
        error: BaseException | None = None
        try:
            result = function()
        except BaseException as problem:
            error = problem
        self._loop.call_soon_threadsafe(self._end, ended, result, error)

    def _end(self, ended: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        self.working -= 1
        self._leave()
        if ended.done():
            return
        if error is None:
            ended.set_result(result)
        else:
            ended.set_exception(error)

    def _leave(self) -> None:
        self._busy -= 1
        while self._line and self._busy < self._count:
            turn = self._line.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)

    def _return(self) -> None:
        self._busy += 1
