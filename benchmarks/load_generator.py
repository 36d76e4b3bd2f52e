"""The load generator: sends prepared requests over keep-alive connections, from its own process.

Without an HTTP library a request costs it some 20 µs. With ``run_load`` each connection sends its next request after
the last response; with ``run_paced_load`` at fixed intervals.
"""

import re
import selectors
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_LOCATION = re.compile(rb"\r\nlocation: *([^\r]*)", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_TIMEOUT_SECONDS = 30.0

#: What an expected response of each status contains in its Location or body (JSON without spaces after names).
ExpectedBodies = Mapping[int, bytes]


class UnexpectedResponse(Exception):
    """An unexpected response: the results would be meaningless."""


@dataclass(frozen=True)
class LoadSpec:
    """What to send: each request once, for at most ``seconds``.

    ``stores_responses`` returns the responses' contents. ``per_second`` is for ``run_paced_load``, over one
    connection.
    """

    address: tuple[str, int]
    requests: Sequence[bytes]
    expected: ExpectedBodies
    connections: int = 1
    seconds: float = 600.0
    stores_responses: bool = False
    per_second: float = 0.0


@dataclass
class LoadResult:
    """Latencies and total time in seconds; ``bodies`` are bodies, or Locations of responses that have one."""

    latencies: list[float] = field(default_factory=list)
    elapsed: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def load_generator_process() -> Iterator[ProcessPoolExecutor]:
    """A process for ``run_load`` and ``run_paced_load`` within the block."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def require_expected(expected: ExpectedBodies, status: int, content: bytes) -> None:
    """Raise UnexpectedResponse unless a response with this body, or Location, is expected."""
    if status not in expected:
        raise UnexpectedResponse(f"an answer has status {status}: {content[:300]!r}")
    if expected[status] not in content.replace(b'": ', b'":'):
        raise UnexpectedResponse(f"an answer lacks {expected[status]!r}: {content[:300]!r}")


def run_load(load: LoadSpec) -> LoadResult:
    """Send the load and wait for every response. Raises UnexpectedResponse."""
    answers, waiting = LoadResult(), iter(load.requests)
    selector = selectors.DefaultSelector()
    busy = min(load.connections, len(load.requests))
    connections = [_Connection(load, selector) for _ in range(busy)]
    started = time.perf_counter()
    try:
        for connection in connections:
            connection.send(next(waiting))
        while busy:
            ready = selector.select(_TIMEOUT_SECONDS)
            if not ready:
                raise UnexpectedResponse(f"no answer within {_TIMEOUT_SECONDS:.0f} s")
            for connection in (key.data for key, _ in ready):
                if not connection.receive(answers):
                    continue
                request = next(waiting, None) if time.perf_counter() < started + load.seconds else None
                if request is None:
                    busy -= 1
                else:
                    connection.send(request)
    finally:
        answers.elapsed = time.perf_counter() - started
        for connection in connections:
            connection.close()
        selector.close()
    return answers


def run_paced_load(loads: Sequence[LoadSpec]) -> list[LoadResult]:
    """Run all loads concurrently, each at its own rate; latencies count from when requests were due."""
    # Spread the starts of the loads.
    starts = [number / len(loads) / load.per_second for number, load in enumerate(loads)]
    with ThreadPoolExecutor(len(loads)) as threads:
        return list(threads.map(_run_paced, loads, starts))


def _run_paced(load: LoadSpec, start: float) -> LoadResult:
    selector = selectors.DefaultSelector()
    answers, connection, began = LoadResult(), _Connection(load, selector), time.perf_counter()
    try:
        for number, request in enumerate(islice(load.requests, round(load.per_second * load.seconds))):
            due = began + start + number / load.per_second
            is_late = due < time.perf_counter()
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.send(request, since=due if is_late else None)
            while not connection.receive(answers):
                pass
    finally:
        answers.elapsed = time.perf_counter() - began
        connection.close()
        selector.close()
    return answers


class _Connection:
    """A connection with at most one request in progress."""

    def __init__(self, load: LoadSpec, selector: selectors.BaseSelector) -> None:
        self._load, self._selector = load, selector
        self._socket: socket.socket | None = None
        self._received = b""
        self._location: bytes | None = None
        self._length: int | None = None
        self._status = 0
        self._closes = False
        self._sent_at = 0.0

    def send(self, request: bytes, *, since: float | None = None) -> None:
        """Send a request; its latency counts from now, or from ``since``."""
        self._sent_at = since or time.perf_counter()
        if self._socket is None:
            self._socket = socket.create_connection(self._load.address, timeout=_TIMEOUT_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(self._socket, selectors.EVENT_READ, self)
        self._socket.sendall(request)

    def receive(self, answers: LoadResult) -> bool:
        """Read available data; True if the response is complete."""
        assert self._socket is not None  # noqa: S101 - only what is registered is ever ready
        data = self._socket.recv(65536)
        if not data:
            raise UnexpectedResponse("the connection was closed instead of an answer")
        self._received += data
        if self._length is None and not self._read_head():
            return False
        if len(self._received) < (self._length or 0):
            return False
        answers.latencies.append(time.perf_counter() - self._sent_at)
        answers.statuses[self._status] += 1
        content = self._received if self._location is None else self._location
        require_expected(self._load.expected, self._status, content)
        if self._load.stores_responses:
            answers.bodies.append(content)
        self._received, self._length = b"", None
        if self._closes:
            self.close()
        return True

    def close(self) -> None:
        """Close it; the next request opens another one."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _read_head(self) -> bool:
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return False
        status, length = _STATUS.match(head), _LENGTH.search(head)
        if status is None or length is None:
            raise UnexpectedResponse(f"an answer has no status or no Content-Length: {head[:300]!r}")
        location = _LOCATION.search(head)
        self._received, self._length, self._status = rest, int(length[1]), int(status[1])
        self._location = None if location is None else location[1]
        self._closes = _CLOSE.search(head) is not None
        return True


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
