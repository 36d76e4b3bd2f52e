"""Requests that step aside: many in one thread, each in a fiber of its own.

A fiber runs until it waits: for its turn, for a moment, for work that a thread does, for a file. Then another one runs
in the same thread, so none takes the interpreter from another. What is written here for fibers holds for threads as
well: where no fiber runs, ``step_aside`` does nothing and the others wait as threads do.
"""

import heapq
import logging
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

log = logging.getLogger(__name__)

Result = TypeVar("Result")

#: Fibers that are kept for the next requests.
_KEPT = 100


@dataclass(frozen=True, slots=True)
class Apart:
    """An attribute of which each thread has its own (``threading.local``): so has each fiber, made by ``fresh``."""

    holder: Any
    name: str
    fresh: Callable[[], Any]


class Fiber(greenlet):
    """Runs one piece of work after the other, each to its end."""

    def __init__(self, fibers: "Fibers") -> None:
        super().__init__(parent=fibers.loop)
        self.fibers = fibers
        self.work: Callable[[], object] | None = None
        self._own = [(one, one.fresh()) for one in fibers.apart]

    def run(self) -> None:
        """Work, and let the loop go on whenever there is none."""
        while self.work is not None:
            try:
                self.work()
            except Exception:
                log.exception("a request was given up")
            self.work = None
            self.fibers.rest(self)

    def go_on(self) -> None:
        """Run it until it waits; called by the loop."""
        for one, own in self._own:
            setattr(one.holder, one.name, own)
        self.switch()

    def pause(self) -> None:
        """Called by itself: let the others go on until the loop comes back to it."""
        # What it has to itself may be another value by now.
        self._own = [(one, getattr(one.holder, one.name)) for one, _ in self._own]
        self.fibers.loop.switch()


class Fibers:
    """The fibers of the thread that makes this, and calls it from its loop.

    ``wake`` is called by other threads when one of them can go on. At most so many work at the same time.
    """

    def __init__(self, wake: Callable[[], object], apart: Sequence[Apart] = (), *, most: int = 100) -> None:
        self.loop = getcurrent()
        #: What is to begin as soon as there is room.
        self.arrived: deque[Callable[[], object]] = deque()
        self._most = most
        self.apart = apart
        self._of_loop = [(one, getattr(one.holder, one.name)) for one in apart]
        self._wake = wake
        self._thread = threading.get_ident()
        self._ready: deque[Fiber] = deque()
        self._opened: deque[Gate] = deque()
        self._alarms: list[tuple[float, int, Gate]] = []
        self._resting: list[Fiber] = []
        self._busy = 0
        self._files: selectors.DefaultSelector | None = None
        self._at_files: dict[int, Gate] = {}
        self._watched: dict[int, tuple[object, int]] = {}

    @property
    def busy(self) -> bool:
        """True while something has arrived, or begun, that has not ended."""
        return bool(self._busy or self.arrived)

    def go_round(self) -> None:
        """Let everything that can begin or go on do so, each in its turn, until all of it waits or is at its end."""
        now = time.monotonic()
        while self._alarms and self._alarms[0][0] <= now:
            heapq.heappop(self._alarms)[2].let_through()
        while True:
            while self.arrived and self._busy < self._most:
                self._start(self.arrived.popleft())
            self._let_through()
            if not self._ready:
                break
            # Those who step aside meanwhile come after whoever a gate lets through.
            for _ in range(len(self._ready)):
                self._ready.popleft().go_on()
        for one, own in self._of_loop:
            setattr(one.holder, one.name, own)

    def _let_through(self) -> None:
        while self._opened:
            self._opened.popleft().let_through()

    def _start(self, work: Callable[[], object]) -> None:
        fiber = self._resting.pop() if self._resting else Fiber(self)
        fiber.work = work
        self._busy += 1
        self._ready.append(fiber)

    def until_alarm(self, most: float) -> float:
        """How many seconds the thread may sleep before one of them has waited long enough."""
        if self._opened:
            return 0.0
        return max(0.0, min(most, self._alarms[0][0] - time.monotonic())) if self._alarms else most

    @property
    def files(self) -> selectors.DefaultSelector:
        """Readable when a file is ready that fibers wait for; ``look_at_files`` is to be called then."""
        if self._files is None:
            self._files = selectors.DefaultSelector()
        return self._files

    @property
    def awaits_files(self) -> bool:
        """True while one of them waits for a file."""
        return bool(self._at_files)

    def look_at_files(self) -> bool:
        """Let those go on whose files are ready; True if there are any."""
        found = False
        for key, events in self.files.select(0):
            gate = self._at_files.pop(key.fd, None)
            if gate is None or key.events != selectors.EVENT_READ:
                # It would be ready at every look. One that is read from again and again stays watched.
                self._forget(key.fd)
            if gate is not None:
                gate.events = events
                gate.is_open = found = True
                gate.let_through()
        return found

    def await_file(self, file: object, descriptor: int, events: int, until: float | None = None) -> int:
        """Called by a fiber: the events (``selectors``) that have come to the file of this number.

        None of them, 0, if they have not come by that moment (of ``time.monotonic``).
        """
        gate = self._at_files[descriptor] = Gate()
        if self._watched.get(descriptor) != (file, events):
            # The number may have been another file's, which is closed.
            self._forget(descriptor)
            self._watched[descriptor] = file, events
            self.files.register(descriptor, events)
        if not gate.wait(None if until is None else max(0.0, until - time.monotonic())):
            self._at_files.pop(descriptor, None)
            self._forget(descriptor)
        return gate.events

    def _forget(self, descriptor: int) -> None:
        if self._watched.pop(descriptor, None) is not None:
            self.files.unregister(descriptor)

    def close(self) -> None:
        """Let go of what ``files`` is."""
        if self._files is not None:
            self._files.close()

    def rest(self, fiber: Fiber) -> None:
        """Called by a fiber at the end of its work; comes back with other work, or never."""
        self._busy -= 1
        if len(self._resting) < _KEPT:
            self._resting.append(fiber)
            self.loop.switch()

    def go_last(self, fiber: Fiber) -> None:
        """Let all others that are ready go first, those included whose gates were opened just now."""
        self._let_through()
        self._ready.append(fiber)
        fiber.pause()

    def park(self, fiber: Fiber, gate: "Gate", until: float | None) -> None:
        """Let others go on until the gate opens, or the moment has come."""
        if until is not None:
            heapq.heappush(self._alarms, (until, id(gate), gate))
        fiber.pause()

    def ready(self, fiber: Fiber) -> None:
        """Have it go on."""
        self._ready.append(fiber)

    def opened(self, gate: "Gate") -> None:
        """Called by whoever opens a gate, in whatever thread."""
        self._opened.append(gate)
        if threading.get_ident() != self._thread:
            self._wake()


class Gate:
    """Closed until somebody opens it. Made by whoever waits before it, a fiber or a thread."""

    __slots__ = ("_fiber", "_lock", "_waits", "events", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        #: What came to the file that is waited for.
        self.events = 0
        self._fiber = current()
        self._waits = False
        if self._fiber is None:
            self._lock = threading.Lock()
            self._lock.acquire()

    def open(self) -> None:
        """Let them through; once."""
        self.is_open = True
        if self._fiber is None:
            self._lock.release()
        else:
            self._fiber.fibers.opened(self)

    def wait(self, seconds: float | None = None) -> bool:
        """True once it is open, False if that took too long."""
        if self._fiber is None:
            return self._lock.acquire(timeout=-1 if seconds is None else seconds)
        if not self.is_open:
            self._waits = True
            self._fiber.fibers.park(self._fiber, self, None if seconds is None else time.monotonic() + seconds)
        return self.is_open

    def let_through(self) -> None:
        """Have the fiber go on, if it stands here. Called by the loop, so nothing changes meanwhile."""
        if self._waits and self._fiber is not None:
            self._waits = False
            self._fiber.fibers.ready(self._fiber)


def current() -> Fiber | None:
    """The fiber that runs; None in a plain thread."""
    found = getcurrent()
    return found if isinstance(found, Fiber) else None


def step_aside() -> None:
    """Let all other fibers that are ready go first."""
    fiber = current()
    if fiber is not None:
        fiber.fibers.go_last(fiber)


def sleep(seconds: float) -> None:
    """Wait; other fibers go on meanwhile."""
    if current() is None:
        time.sleep(seconds)
    else:
        Gate().wait(seconds)


def elsewhere(executor: Executor, work: Callable[[], Result]) -> Result:
    """What the work makes in another thread or process; other fibers go on meanwhile. Raises what it raises."""
    future: Future[Result] = executor.submit(work)
    if current() is not None:
        gate = Gate()
        future.add_done_callback(lambda _: gate.open())
        gate.wait()
    return future.result()
