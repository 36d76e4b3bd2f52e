"""Synchronous code that waits without blocking an event loop.

Endpoints, use cases and storages are plain functions. A server with an event loop runs each request in a greenlet
(``GreenletPool.run``). Where the code waits, by a function of this module, the loop continues with other requests. In a
thread without a greenlet the same functions wait as threads do, so tests, programs and WSGI servers need nothing else.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class GreenletPool:
    """Runs functions in greenlets of the running event loop, at most ``limit`` at a time; the rest waits in line."""

    def __init__(self, limit: int = 100) -> None:
        self.loop = asyncio.get_running_loop()
        self._limit = limit
        self._busy = 0
        self._released = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        # A new greenlet costs as much as a fifth of the cheapest request, so they are used again.
        self._idle: list[_Greenlet] = []

    @property
    def active_count(self) -> int:
        """How many functions have begun and not ended."""
        return self._busy + self._released

    async def run(self, function: Callable[[], Result]) -> Result:
        """What the function returns or raises. It sees the context variables of the caller, and what it sets ends with
        it.

        Once begun it runs to its end: to cancel this coroutine only drops its result.
        """
        if self._busy < self._limit:
            self._busy += 1
        else:
            await self._wait_for_slot()
        call = _Call(function)
        running = self._idle.pop() if self._idle else _Greenlet(self)
        running.gr_context = copy_context()
        running.start(call)
        if not call.has_ended:
            call.ended = self.loop.create_future()
            await call.ended
        return call.outcome()

    async def _wait_for_slot(self) -> None:
        turn = self.loop.create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free_slot()
            raise

    def return_idle(self, ended: "_Greenlet") -> None:
        """Keep the greenlet for another function, and give its place to the first in line."""
        self._idle.append(ended)
        self._free_slot()

    def release_slot(self) -> None:
        """Give the place of the current greenlet to the first in line, before it waits for something slow."""
        self._released += 1
        self._free_slot()

    def reacquire_slot(self) -> None:
        """Take it again, though another one may have it now."""
        self._released -= 1
        self._busy += 1

    def _free_slot(self) -> None:
        self._busy -= 1
        while self._waiters and self._busy < self._limit:
            turn = self._waiters.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)


class _Call(Generic[Result]):
    """A function, and what has come of it."""

    __slots__ = ("_error", "_function", "_result", "ended", "has_ended")

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._result: Result | None = None
        self._error: BaseException | None = None
        self.has_ended = False
        #: Set where the function has waited, for who waits for its end.
        self.ended: asyncio.Future[None] | None = None

    def execute(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error
        self.has_ended = True
        if self.ended is None:
            return
        if not self.ended.done():
            self.ended.set_result(None)
        elif self._error is not None:
            log.error("a request failed after its client had left", exc_info=self._error)

    def outcome(self) -> Result:
        if self._error is not None:
            try:
                raise self._error
            finally:
                # The traceback holds this frame, and this frame the error.
                self._error = None
        return self._result  # type: ignore[return-value]


class _Greenlet(greenlet):
    """Runs one call after another."""

    #: SQLAlchemy's ``await_only`` may be called in it, too.
    __sqlalchemy_greenlet_provider__ = True

    def __init__(self, owner: GreenletPool) -> None:
        #: In which the event loop runs.
        self.main = getcurrent()
        super().__init__(parent=self.main)
        self.loop = owner.loop
        self.thread = threading.get_ident()
        self.pool = owner
        self._call: _Call[Any] | None = None

    def run(self) -> None:
        while self._call is not None:
            self._call.execute()
            self._call = None
            # What the context holds is not to live until the next call.
            self.gr_context = None
            self.pool.return_idle(self)
            self.main.switch(None)

    def start(self, call: _Call[Any]) -> None:
        self._call = call
        self.resume()

    def resume(self) -> None:
        """Continue it; called by the loop."""
        self._await(self.switch())

    def _await(self, awaitable: Awaitable[Any] | None) -> None:
        """Continue it with what the awaitable brings; None means that it ended or arranged by itself to be resumed."""
        if awaitable is not None:
            asyncio.ensure_future(awaitable, loop=self.loop).add_done_callback(self._continue)

    def _continue(self, future: "asyncio.Future[Any]") -> None:
        try:
            value = future.result()
        except BaseException as error:
            self._await(self.throw(error))
        else:
            self._await(self.switch(value))


def in_greenlet() -> bool:
    """True where waiting lets an event loop continue."""
    return isinstance(getcurrent(), _Greenlet)


def current_greenlet_pool() -> GreenletPool | None:
    """Those to which the current greenlet belongs; None in a plain thread."""
    current = getcurrent()
    return current.pool if isinstance(current, _Greenlet) else None


def greenlet_event_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of the current greenlet; None in a plain thread."""
    current = getcurrent()
    return current.loop if isinstance(current, _Greenlet) else None


def await_(awaitable: Awaitable[Result]) -> Result:
    """What the awaitable returns or raises. In a plain thread it runs in an event loop of its own."""
    current = getcurrent()
    if isinstance(current, _Greenlet):
        return current.main.switch(awaitable)  # type: ignore[no-any-return]
    return asyncio.run(_as_coroutine(awaitable))


async def _as_coroutine(awaitable: Awaitable[Result]) -> Result:
    return await awaitable


def sleep(seconds: float) -> None:
    """Wait. With 0 a greenlet lets all others run that can; a plain thread does nothing."""
    current = getcurrent()
    if not isinstance(current, _Greenlet):
        if seconds > 0:
            time.sleep(seconds)
        return
    if seconds > 0:
        current.loop.call_later(seconds, current.loop.call_soon, current.resume)
    else:
        current.loop.call_soon(current.resume)
    current.main.switch(None)


def run_in_executor(executor: Executor, function: Callable[[], Result]) -> Result:
    """What the function returns or raises in another thread or process."""
    future = executor.submit(function)
    current = getcurrent()
    if isinstance(current, _Greenlet) and not future.done():
        ended = Event()
        future.add_done_callback(lambda _: ended.set())
        ended.wait()
    return future.result()


class Event:
    """As ``threading.Event``, but set only once. Greenlets and threads wait for it, and any thread may set it."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: deque[_Waiter] = deque()

    def is_set(self) -> bool:
        """True once it was set."""
        return self._is_set

    def set(self) -> None:
        """Let everything continue that waits for it, now or later."""
        self._is_set = True
        while self._waiters:
            try:
                waiter = self._waiters.popleft()
            except IndexError:
                # Another thread sets it, too.
                return
            waiter.wake()

    def wait(self, timeout: float | None = None) -> bool:
        """True once it is set; False if that takes longer than so many seconds."""
        if self._is_set:
            return True
        current = getcurrent()
        waiter = _GreenletWaiter(current) if isinstance(current, _Greenlet) else _ThreadWaiter()
        self._waiters.append(waiter)
        # It may have been set in between, by another thread, which then has not seen this waiter.
        if not self._is_set:
            waiter.wait(timeout)
            if not self._is_set:
                with suppress(ValueError):
                    self._waiters.remove(waiter)
        return self._is_set


class _Waiter:
    __slots__ = ()

    def wait(self, timeout: float | None) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        raise NotImplementedError


class _ThreadWaiter(_Waiter):
    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, timeout: float | None) -> None:
        self._lock.acquire(timeout=-1 if timeout is None else timeout)

    def wake(self) -> None:
        # Each waiter is woken once, by whom its event was set.
        self._lock.release()


class _GreenletWaiter(_Waiter):
    __slots__ = ("_greenlet", "_waits")

    def __init__(self, current: _Greenlet) -> None:
        self._greenlet = current
        self._waits = False

    def wait(self, timeout: float | None) -> None:
        self._waits = True
        loop = self._greenlet.loop
        alarm = None if timeout is None else loop.call_later(timeout, loop.call_soon, self.resume)
        self._greenlet.main.switch(None)
        if alarm is not None:
            alarm.cancel()

    def wake(self) -> None:
        if threading.get_ident() == self._greenlet.thread:
            self._greenlet.loop.call_soon(self.resume)
        else:
            self._greenlet.loop.call_soon_threadsafe(self.resume)

    def resume(self) -> None:
        if self._waits:
            self._waits = False
            self._greenlet.resume()


def wait_for_socket(descriptor: int, events: int, timeout: float | None = None) -> int:
    """The events (of ``selectors``) that have come to a socket, or 0 after so many seconds. Called in a greenlet; the
    descriptor must stay open meanwhile."""
    current = getcurrent()
    if not isinstance(current, _Greenlet):
        raise RuntimeError("a plain thread waits by selectors")
    loop, waiter, came = current.loop, _GreenletWaiter(current), 0

    def ready(event: int) -> None:
        nonlocal came
        came |= event
        # Not at once: during the callbacks of sockets and timers libuv (uvloop) has lists in its stack frame, which
        # another greenlet's frames overwrite; to remove a reader then would write into those.
        loop.call_soon(waiter.resume)

    if events & EVENT_READ:
        loop.add_reader(descriptor, ready, EVENT_READ)
    if events & EVENT_WRITE:
        loop.add_writer(descriptor, ready, EVENT_WRITE)
    try:
        waiter.wait(timeout)
    finally:
        if events & EVENT_READ:
            loop.remove_reader(descriptor)
        if events & EVENT_WRITE:
            loop.remove_writer(descriptor)
    return came
