"""The load generator: sends ready-made requests over kept-alive connections, from a process of its own.

One thread, one selector, no HTTP library: a request costs it some 20 µs, a fraction of what any WSGI server needs, so
it keeps the server busy without being what is measured. With ``drive`` each connection sends its next request when the
answer to the last one has come; with ``keep_pace`` when it is time.
"""

import re
import selectors
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from multiprocessing import get_context

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_LOCATION = re.compile(rb"\r\nlocation: *([^\r]*)", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_END_OF_HEAD = b"\r\n\r\n"
_SILENCE = 30.0


#: What answers of each status hold: in the body, JSON without spaces after names, or in the Location if there is one.
#: Other statuses are not expected.
Expected = Mapping[int, bytes]


class LoadFailed(Exception):
    """The service gave another answer than the benchmark counts on: its figures would mean nothing."""


@dataclass(frozen=True)
class Load:
    """What to send: each request once, for ``seconds`` at most.

    With ``keeps`` the answers' contents are handed back. ``sources`` are the addresses that connections come from, each
    the next, and ``turn`` how many requests a connection sends before another one is opened; 0 is no end.
    """

    address: tuple[str, int]
    requests: Sequence[bytes]
    expected: Expected
    connections: int
    seconds: float
    keeps: bool = False
    sources: Sequence[str] = ()
    turn: int = 0


@dataclass(frozen=True)
class Pace:
    """One connection that sends ``per_second`` requests, each once, and for ``seconds`` at most."""

    address: tuple[str, int]
    requests: Sequence[bytes]
    expected: Expected
    per_second: float
    seconds: float


@dataclass
class Answers:
    """What came back: the latencies in seconds, how long it took in all, and the generator's own CPU time.

    ``contents`` are the bodies, or the Locations of answers that have one, where the load keeps them.
    """

    latencies: list[float] = field(default_factory=list)
    elapsed: float = 0.0
    cpu: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    contents: list[bytes] = field(default_factory=list)


@contextmanager
def generator() -> Iterator[ProcessPoolExecutor]:
    """A process that can be given ``drive`` and a Load; it ends with the block."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def check(expected: Expected, status: int, content: bytes) -> None:
    """Raise LoadFailed unless an answer with this body, or Location, is expected."""
    if status not in expected:
        raise LoadFailed(f"an answer has status {status}: {content[:300]!r}")
    if expected[status] not in content.replace(b'": ', b'":'):
        raise LoadFailed(f"an answer lacks {expected[status]!r}: {content[:300]!r}")


def drive(load: Load) -> Answers:
    """Send the load and wait for every answer. Raises LoadFailed."""
    answers = Answers()
    waiting = iter(load.requests)
    sources = cycle(load.sources) if load.sources else None
    number = min(load.connections, len(load.requests))
    selector = selectors.DefaultSelector()
    connections = [_Connection(load.address, load.expected, selector, sources, load.turn) for _ in range(number)]
    cpu, started = time.process_time(), time.perf_counter()
    try:
        for connection in connections:
            connection.send(next(waiting))
        busy, ends_at = number, started + load.seconds
        while busy:
            for connection in _ready(selector, _SILENCE):
                if not connection.receive(answers, keeps=load.keeps):
                    continue
                request = next(waiting, None) if time.perf_counter() < ends_at else None
                if request is None:
                    busy -= 1
                else:
                    connection.send(request)
    finally:
        answers.elapsed, answers.cpu = time.perf_counter() - started, time.process_time() - cpu
        for connection in connections:
            connection.close()
        selector.close()
    return answers


def keep_pace(paces: Sequence[Pace]) -> list[Answers]:
    """The answers to each pace, all kept at the same time. Raises LoadFailed.

    A request that is due while its connection still waits for an answer has its latency counted from that moment on.
    """
    selector = selectors.DefaultSelector()
    started = time.perf_counter()
    # Not all of them at the same moment.
    runners = [
        _Runner(pace, selector, started + place / len(paces) / pace.per_second) for place, pace in enumerate(paces)
    ]
    of_connection = {runner.connection: runner for runner in runners}
    try:
        while any(not runner.finished for runner in runners):
            wake_at = min(runner.next_at for runner in runners)
            idle = wake_at < float("inf")
            patience = max(0.0, wake_at - time.perf_counter()) if idle else _SILENCE
            for connection in _ready(selector, patience, may_pass=idle):
                of_connection[connection].receive()
            for runner in runners:
                runner.go_on()
    finally:
        for runner in runners:
            runner.answers.elapsed = time.perf_counter() - started
            runner.connection.close()
        selector.close()
    return [runner.answers for runner in runners]


class _Runner:
    """A pace that is being kept."""

    def __init__(self, pace: Pace, selector: selectors.BaseSelector, begins_at: float) -> None:
        self.answers = Answers()
        self.connection = _Connection(pace.address, pace.expected, selector)
        self.finished = False
        self._requests = islice(pace.requests, round(pace.per_second * pace.seconds))
        self._span = 1 / pace.per_second
        self._due = begins_at
        self._waits = False
        self._free_at = 0.0

    @property
    def next_at(self) -> float:
        """When there is something to do, unless an answer comes before."""
        return float("inf") if self._waits or self.finished else self._due

    def receive(self) -> None:
        """Take what has come."""
        if self.connection.receive(self.answers):
            self._waits, self._free_at = False, time.perf_counter()

    def go_on(self) -> None:
        """Send the next request if it is time."""
        if self.next_at > time.perf_counter():
            return
        request = next(self._requests, None)
        if request is None:
            self.finished = True
            return
        self.connection.send(request, since=self._due if self._free_at > self._due else None)
        self._waits = True
        self._due += self._span


def _ready(selector: selectors.BaseSelector, patience: float, *, may_pass: bool = False) -> Iterator["_Connection"]:
    """The connections on which something has come. Raises LoadFailed after a silence, unless it may pass."""
    ready = selector.select(patience)
    if not ready and not may_pass:
        raise LoadFailed(f"no answer within {patience:.0f} s")
    return (key.data for key, _ in ready)


class _Connection:
    """One connection with at most one request under way."""

    def __init__(
        self,
        address: tuple[str, int],
        expected: Expected,
        selector: selectors.BaseSelector,
        sources: Iterator[str] | None = None,
        turn: int = 0,
    ) -> None:
        self._address = address
        self._expected = expected
        self._selector = selector
        self._sources = sources
        self._turn = turn
        self._received = b""
        self._location: bytes | None = None
        self._length: int | None = None
        self._status = 0
        self._closes = False
        self._sent = 0
        self._sent_at = 0.0
        self._socket: socket.socket | None = None

    def send(self, request: bytes, *, since: float | None = None) -> None:
        """Send a request; its latency counts from now, or since a moment before."""
        self._sent_at = since or time.perf_counter()
        if self._socket is None:
            source = None if self._sources is None else (next(self._sources), 0)
            self._socket = socket.create_connection(self._address, timeout=_SILENCE, source_address=source)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(self._socket, selectors.EVENT_READ, self)
            self._sent = 0
        self._sent += 1
        self._socket.sendall(request)

    def receive(self, answers: Answers, *, keeps: bool = False) -> bool:
        """Take what has come; true if the answer is complete."""
        assert self._socket is not None  # noqa: S101 - only what is registered is ever ready
        data = self._socket.recv(65536)
        if not data:
            raise LoadFailed("the connection was closed instead of an answer")
        self._received += data
        if self._length is None and not self._read_head():
            return False
        if len(self._received) < (self._length or 0):
            return False
        answers.latencies.append(time.perf_counter() - self._sent_at)
        answers.statuses[self._status] += 1
        content = self._received if self._location is None else self._location
        check(self._expected, self._status, content)
        if keeps:
            answers.contents.append(content)
        self._received, self._length = b"", None
        if self._closes or self._sent == self._turn:
            self.close()
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _read_head(self) -> bool:
        head, found, rest = self._received.partition(_END_OF_HEAD)
        if not found:
            return False
        status, length = _STATUS.match(head), _LENGTH.search(head)
        if status is None or length is None:
            raise LoadFailed(f"an answer has no status or no Content-Length: {head[:300]!r}")
        location = _LOCATION.search(head)
        self._received, self._length, self._status = rest, int(length[1]), int(status[1])
        self._location = None if location is None else location[1]
        self._closes = _CLOSE.search(head) is not None
        return True


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
