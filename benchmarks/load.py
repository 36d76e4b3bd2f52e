"""The load generator: sends ready-made requests over kept-alive connections, from a process of its own.

One thread, one selector, no HTTP library: a request costs it some 20 µs, a fraction of what any WSGI server needs, so
it keeps the server busy without being what is measured. Each connection sends its next request when the answer to the
last one has come.
"""

import re
import selectors
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from multiprocessing import get_context

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_END_OF_HEAD = b"\r\n\r\n"
_SILENCE = 30.0


class LoadFailed(Exception):
    """The service gave another answer than the benchmark counts on: its figures would mean nothing."""


@dataclass(frozen=True)
class Load:
    """What to send: ``count`` requests at most, for ``seconds`` at most.

    Every answer must be a 200 whose body holds ``expected``.
    """

    address: tuple[str, int]
    requests: Sequence[bytes]
    expected: bytes
    connections: int
    count: int
    seconds: float


@dataclass
class Answers:
    """What came back: the latencies in seconds, how long it took in all, and the generator's own CPU time."""

    latencies: list[float] = field(default_factory=list)
    elapsed: float = 0.0
    cpu: float = 0.0
    last_body: bytes = b""


@contextmanager
def generator() -> Iterator[ProcessPoolExecutor]:
    """A process that can be given ``drive`` and a Load; it ends with the block."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def drive(load: Load) -> Answers:
    """Send the load and wait for every answer. Raises LoadFailed."""
    answers = Answers()
    waiting = islice(cycle(load.requests), load.count)
    selector = selectors.DefaultSelector()
    connections = [_Connection(load, selector) for _ in range(min(load.connections, load.count))]
    cpu, started = time.process_time(), time.perf_counter()
    try:
        for connection in connections:
            connection.send(next(waiting))
        busy, ends_at = len(connections), started + load.seconds
        while busy:
            ready = selector.select(_SILENCE)
            if not ready:
                raise LoadFailed(f"no answer within {_SILENCE:.0f} s")
            for key, _ in ready:
                connection = key.data
                if not connection.receive(answers):
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


class _Connection:
    """One connection with at most one request under way."""

    def __init__(self, load: Load, selector: selectors.BaseSelector) -> None:
        self._load = load
        self._selector = selector
        self._received = b""
        self._length: int | None = None
        self._closes = False
        self._sent_at = 0.0
        self._socket: socket.socket | None = None

    def send(self, request: bytes) -> None:
        self._sent_at = time.perf_counter()
        if self._socket is None:
            self._socket = socket.create_connection(self._load.address, timeout=_SILENCE)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(self._socket, selectors.EVENT_READ, self)
        self._socket.sendall(request)

    def receive(self, answers: Answers) -> bool:
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
        if self._load.expected not in self._received:
            raise LoadFailed(f"an answer lacks {self._load.expected!r}: {self._received[:300]!r}")
        answers.last_body = self._received
        self._received, self._length = b"", None
        if self._closes:
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
        if not head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 ")):
            raise LoadFailed(f"an answer is no 200: {self._received[:300]!r}")
        length = _LENGTH.search(head)
        if length is None:
            raise LoadFailed("an answer has no Content-Length")
        self._received, self._length = rest, int(length[1])
        self._closes = _CLOSE.search(head) is not None
        return True


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
