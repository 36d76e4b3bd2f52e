"""Requests as granian hands them over (RSGI), made into what a WSGI application takes, and its answer."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import quote

from waitress.proxy_headers import PROXY_HEADERS

from identity.server.framing import FORWARDED, LONGEST_LENGTH, PEER

log = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]

#: How long we listen on after a refusal, so that whoever is still sending hears it.
_LINGERING = 2.0

#: What the application is not shown unless a trusted proxy says it.
_FORWARDING = frozenset(f"HTTP_{name}" for name in PROXY_HEADERS)
_LENGTH = "CONTENT_LENGTH"
_WITHOUT_PREFIX = frozenset({_LENGTH, "CONTENT_TYPE"})
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


class Scope(Protocol):
    """What is known of a request before its body."""

    method: str
    path: str
    query_string: str
    http_version: str
    client: str
    headers: Any


class Exchange(Protocol):
    """The way to a request's body, and for its answer."""

    def __aiter__(self) -> "Exchange": ...
    def __anext__(self) -> Any: ...

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        """Send the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    headers: Headers
    body: bytes


class Refused(Exception):
    """The server answers by itself, and ends the connection."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.answer = Answer(status, [("Content-Type", "text/plain; charset=utf-8")], f"{why}\n".encode())


def environment(scope: Scope, base: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The WSGI environment of a request, beginning with ``base`` and without its body.

    Raises Refused if its first line and headers are longer than ``most``, or could be understood in two ways. A body in
    chunks is refused too: RSGI does not tell one that was cut off from a whole one, and one without a length could be
    of any (RFC 9110 §15.5.12).
    """
    environ = dict(base)
    path, query = scope.path, scope.query_string
    if not path.startswith("/") or path.startswith("//"):
        path = "/" + path.lstrip("/")
    address, _, port = scope.client.rpartition(":")
    environ["REMOTE_ADDR"] = environ["REMOTE_HOST"] = environ[PEER] = address.strip("[]")
    environ["REMOTE_PORT"] = port
    environ["REQUEST_METHOD"] = scope.method.upper()
    environ["PATH_INFO"] = _as_latin(path)
    environ["QUERY_STRING"] = _as_latin(query)
    environ["SERVER_PROTOCOL"] = "HTTP/1.1" if scope.http_version == "1.1" else "HTTP/1.0"
    length = len(path) + len(query)
    for name, value in scope.headers.items():
        length += len(name) + len(value) + 4
        key = _key(name)
        if key is None:
            continue
        if key not in environ:
            environ[key] = value
        elif key == "HTTP_HOST" or key == _LENGTH:
            raise Refused(400, "There has to be one Host and one Content-Length.")
        else:
            environ[key] += ", " + value
    if not _FORWARDING.isdisjoint(environ):
        environ[FORWARDED] = True
    if length > most:
        raise Refused(431, "The headers are too long.")
    if "HTTP_TRANSFER_ENCODING" in environ:
        raise Refused(411, "A body has to have a Content-Length here.")
    if scope.http_version == "1.1" and "HTTP_HOST" not in environ:
        raise Refused(400, "There has to be one Host.")
    return environ


def length_of(environ: Mapping[str, Any]) -> int:
    """How many bytes of body follow. Raises Refused if that is no number of any use."""
    length = environ.get(_LENGTH, "0")
    if not length.isdecimal() or len(length) > LONGEST_LENGTH:
        raise Refused(400, "Content-Length is invalid.")
    return int(length)


class Incoming:
    """A body on its way. ``then`` is told once: None when all of it is there to be read, or why it is not.

    No task of asyncio waits for it: that would cost more than all else that is done for a small one.
    """

    def __init__(
        self,
        exchange: Exchange,
        length: int,
        into: Any,
        then: Callable[[Refused | None], None],
        *,
        seconds: float,
        silence: float,
    ) -> None:
        self._pieces: Any = aiter(exchange)
        self._length = length
        self._into = into
        self._then: Callable[[Refused | None], None] | None = then
        self._silence = silence
        self._quiet_at = time.monotonic() + silence
        self._ends_at = time.monotonic() + seconds
        self._await()

    def give_up_if_late(self, now: float) -> None:
        """End it if it has taken all its time, or nothing has come for the time of ``silence``."""
        if self._then is not None and now > min(self._ends_at, self._quiet_at):
            self._waiting.cancel()
            self._end(Refused(408, "The body took too long."))

    def _await(self) -> None:
        self._waiting: Any = anext(self._pieces)
        self._waiting.add_done_callback(self._hear)

    def _hear(self, waiting: Any) -> None:
        if self._then is None:
            return
        piece = waiting.result()
        self._into.write(piece)
        if not piece:
            self._end(Refused(400, "The body is shorter than its Content-Length."))
        elif self._into.tell() < self._length:
            self._quiet_at = time.monotonic() + self._silence
            self._await()
        else:
            self._into.seek(0)
            self._end(None)

    def _end(self, why: Refused | None) -> None:
        then, self._then = self._then, None
        # granian reads on for as long as anybody has these.
        self._pieces = self._waiting = None
        if then is not None:
            then(why)


async def linger(exchange: Exchange) -> None:
    """Hear for a moment what is still under way: it would otherwise undo our last words."""
    try:
        async with asyncio.timeout(_LINGERING):
            async for piece in exchange:
                if not piece:
                    break
    except (TimeoutError, RuntimeError):
        # It was long enough; or what is read of the body was read by somebody else.
        pass


def call(application: Application, environ: dict[str, Any]) -> Answer:
    """The application's answer, whole; 500 if it raises."""
    begun: list[tuple[int, Headers]] = []
    pieces: list[bytes] = []

    def start_response(status: str, headers: Headers, exc_info: object = None) -> Callable[[bytes], None]:
        begun[:] = [(int(status[:3]), headers)]
        return pieces.append

    try:
        content = application(environ, start_response)
        try:
            pieces += content
        finally:
            close = getattr(content, "close", None)
            if close is not None:
                close()
        [(status, headers)] = begun
    except Exception:
        log.exception("a request was given up")
        return Answer(500, [("Content-Type", "text/plain")], b"Internal Server Error\n")
    return Answer(status, headers, b"".join(pieces))


def send(exchange: Exchange, answer: Answer, more: Headers) -> None:
    """Send it with these headers besides."""
    headers = [*answer.headers, *more]
    if not all(value.isascii() for _, value in headers):
        # granian takes no other ones.
        headers = [(name, quote(value.encode("latin-1"), safe=_PRINTABLE)) for name, value in headers]
    exchange.response_bytes(answer.status, headers, answer.body)


@lru_cache(1000)
def _key(name: str) -> str | None:
    """The header's name in a WSGI environment; None for one that could be mistaken for another there."""
    if "_" in name:
        return None
    key = name.upper().replace("-", "_")
    return key if key in _WITHOUT_PREFIX else f"HTTP_{key}"


def _as_latin(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")
