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
    """Runs functions in greenlets of the running event loop, at most ``limit`` at a time; the rest queue."""

    def __init__(self, limit: int = 100) -> None:
        self.loop = asyncio.get_running_loop()
        self._limit = limit
        self._busy = 0
        self._released = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        # Creating a greenlet costs a fifth of the cheapest request, so they are reused.
        self._idle: list[_Greenlet] = []

    @property
    def active_count(self) -> int:
        return self._busy + self._released

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run the function and return its result or raise its error. It sees a copy of the caller's context variables.

        Once started, the function runs to its end; cancelling this coroutine only discards the result.
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
        """Keep the greenlet for reuse and pass its slot to the next waiter."""
        self._idle.append(ended)
        self._free_slot()

    def release_slot(self) -> None:
        """Pass the slot of the current greenlet to the next waiter, before a slow wait."""
        self._released += 1
        self._free_slot()

    def reacquire_slot(self) -> None:
        """Take a slot again, even if that exceeds the limit for a moment."""
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
    """A function call and its result."""

    __slots__ = ("_error", "_function", "_result", "ended", "has_ended")

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._result: Result | None = None
        self._error: BaseException | None = None
        self.has_ended = False
        #: Set if the function has waited, to notify whoever awaits its end.
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
                # Breaks the reference cycle between the traceback, this frame and the error.
                self._error = None
        return self._result  # type: ignore[return-value]


class _Greenlet(greenlet):
    #: Allows SQLAlchemy's ``await_only`` in this greenlet.
    __sqlalchemy_greenlet_provider__ = True

    def __init__(self, owner: GreenletPool) -> None:
        #: The greenlet that runs the event loop.
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
            # Objects in the context must not live until the next call.
            self.gr_context = None
            self.pool.return_idle(self)
            self.main.switch(None)

    def start(self, call: _Call[Any]) -> None:
        self._call = call
        self.resume()

    def resume(self) -> None:
        """Called by the event loop."""
        self._await(self.switch())

    def _await(self, awaitable: Awaitable[Any] | None) -> None:
        """Resume with the awaitable's result; None if the function has ended or arranged to be resumed."""
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
    """True if waiting lets the event loop continue."""
    return isinstance(getcurrent(), _Greenlet)


def current_greenlet_pool() -> GreenletPool | None:
    """The pool of the current greenlet; None in a plain thread."""
    current = getcurrent()
    return current.pool if isinstance(current, _Greenlet) else None


def greenlet_event_loop() -> asyncio.AbstractEventLoop | None:
    current = getcurrent()
    return current.loop if isinstance(current, _Greenlet) else None


def await_(awaitable: Awaitable[Result]) -> Result:
    """Wait for the awaitable and return its result. In a plain thread it runs in a new event loop."""
    current = getcurrent()
    if isinstance(current, _Greenlet):
        return current.main.switch(awaitable)  # type: ignore[no-any-return]
    return asyncio.run(_as_coroutine(awaitable))


async def _as_coroutine(awaitable: Awaitable[Result]) -> Result:
    return await awaitable


def sleep(seconds: float) -> None:
    """Wait. With 0, a greenlet yields to all that are ready; a plain thread does nothing."""
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
    """Run the function in another thread or process and return its result or raise its error."""
    future = executor.submit(function)
    current = getcurrent()
    if isinstance(current, _Greenlet) and not future.done():
        ended = Event()
        future.add_done_callback(lambda _: ended.set())
        ended.wait()
    return future.result()


class Event:
    """Like ``threading.Event``, but set only once. Greenlets and threads can wait for it, and any thread may set it."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: deque[_Waiter] = deque()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Wake all current and future waiters."""
        self._is_set = True
        while self._waiters:
            try:
                waiter = self._waiters.popleft()
            except IndexError:
                # Another thread is setting it as well.
                return
            waiter.wake()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set. Returns False after ``timeout`` seconds."""
        if self._is_set:
            return True
        current = getcurrent()
        waiter = _GreenletWaiter(current) if isinstance(current, _Greenlet) else _ThreadWaiter()
        self._waiters.append(waiter)
        # Another thread may have set it in between, before this waiter was registered.
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
        # Each waiter is woken once, by the thread that set the event.
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
    """Wait for events (of ``selectors``) on a socket; returns them, or 0 after ``timeout`` seconds. Call it in a
    greenlet and keep the descriptor open meanwhile.
    """
    current = getcurrent()
    if not isinstance(current, _Greenlet):
        raise RuntimeError("a plain thread waits by selectors")
    loop, waiter, came = current.loop, _GreenletWaiter(current), 0

    def ready(event: int) -> None:
        nonlocal came
        came |= event
        # Not immediately: during socket and timer callbacks, libuv (uvloop) keeps lists in its stack frame, which
        # another greenlet's frames overwrite; removing a reader then would corrupt them.
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
