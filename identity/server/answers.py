"""How the application answers a request, and how that is sent: what waitress calls a task."""

import io
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from waitress.proxy_headers import PROXY_HEADERS
from waitress.task import ErrorTask, WSGITask, hop_by_hop
from waitress.utilities import InternalServerError, RequestEntityTooLarge, build_http_date

from identity import watching
from identity.server.framing import ADMIT_BODY, CREDENTIALS, FORWARDED, PEER

Headers = list[tuple[str, str]]

#: What a WSGI environment holds that another request with the same head has not.
_OWN = ("wsgi.input", *(f"HTTP_{name}" for name in CREDENTIALS))
#: What waitress offers besides, and we do not: each request is answered before the next one is read.
_NOT_OFFERED = ("wsgi.file_wrapper", "waitress.client_disconnected")


class Task(WSGITask):  # type: ignore[misc]
    """Has the application answer a request (PEP 3333); says so if it is the last one of its connection.

    As waitress does it, in a third of the steps where the answer is short; they were a third of what that costs.
    """

    complete: bool
    wrote_header: bool
    content_length: int | None
    _has_body = False

    def get_environment(self) -> dict[str, Any]:
        """What the application is told; the head that was heard before is not made into words anew."""
        request = self.request
        known = request.known
        if known is None or known.environ is None:
            environ: dict[str, Any] = super().get_environment()
            for name in _NOT_OFFERED:
                del environ[name]
            environ[PEER] = environ["REMOTE_ADDR"]
            if known is not None:
                known.environ = {name: value for name, value in environ.items() if name not in _OWN}
            return environ
        environ = dict(known.environ)
        for name in CREDENTIALS:
            if name in request.headers:
                environ[f"HTTP_{name}"] = request.headers[name]
        environ["wsgi.input"] = request.get_body_stream()
        return environ

    def execute(self) -> None:
        """Send what the application answers."""
        server = self.channel.server
        # Most requests have no word of a proxy in them that could be believed, or would have to be thrown away.
        forwarded = not PROXY_HEADERS.isdisjoint(self.request.headers)
        application = server.application if forwarded else server.plain
        environ = self.get_environment()
        if forwarded:
            environ[FORWARDED] = True
        content = application(environ, self._start_response)
        try:
            if self.content_length is None and isinstance(content, list) and len(content) == 1:
                self.content_length = len(content[0])
            for piece in content:
                if piece:
                    self.write(piece)
        finally:
            if hasattr(content, "close"):
                content.close()
        expected = self.content_length
        if expected is not None and self.content_bytes_written != expected and self.request.command != "HEAD":
            # Whoever waits for the rest learns that there is none.
            self.set_close_on_finish()
            self.logger.warning("the application answered %d bytes of %d", self.content_bytes_written, expected)

    def write(self, data: bytes) -> None:
        """Send a piece of the answer, the first one together with the head."""
        length = self.content_length
        if self.wrote_header or length is None or len(data) > length or not self._has_body:
            super().write(data)
            return
        head = self.build_response_header()
        self.wrote_header = True
        self.content_bytes_written = len(data)
        self.channel.write_soon(head + data)

    def build_response_header(self) -> bytes:
        """Status line and headers."""
        if self.channel.server.stopping and len(self.channel.requests) == 1:
            self.request.headers["CONNECTION"] = "close"
        closes = self.request.headers.get("CONNECTION", "").lower() == "close"
        if closes or self.close_on_finish or self.version != "1.1" or self.content_length is None or not self._has_body:
            header: bytes = super().build_response_header()
            return header
        more = "" if "content-length" in self._names else f"Content-Length: {self.content_length}\r\n"
        if "date" not in self._names:
            more += f"Date: {_date(int(self.start_time))}\r\n"
        if (ident := self.channel.server.adj.ident) and "server" not in self._names:
            more += f"Server: {ident}\r\n"
        return f"HTTP/1.1 {self._told}\r\n{more}\r\n".encode("latin-1")

    def _start_response(self, status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], None]:
        """Raises ValueError for what could be read as two headers, or belongs to the server."""
        if exc_info and self.wrote_header:
            raise exc_info[1]
        if self.complete and not exc_info:
            raise AssertionError("start_response was called twice")
        told = "\n".join([status, *map(": ".join, headers)])
        if "\r" in told or told.count("\n") != len(headers):
            raise ValueError("a status or header holds the end of a line")
        self._names = {name.lower(): value for name, value in headers}
        if not hop_by_hop.isdisjoint(self._names):
            raise ValueError("a header is the server's own")
        self._told = told.replace("\n", "\r\n")
        self.complete, self.status, self.response_headers = True, status, list(headers)
        self._has_body = self.has_body
        length = self._names.get("content-length")
        self.content_length = None if length is None else int(length)
        return self.write


@lru_cache(maxsize=1)
def _date(now: int) -> str:
    """The moment as RFC 9110 §5.6.7 has it."""
    made: str = build_http_date(now)
    return made


class _TooLarge(Task):
    """Has the application refuse a body that was not read: by its length, and in its own words.

    Where larger ones are taken it calls ``environ[ADMIT_BODY]`` with how many bytes it takes, once it knows that
    whoever sends them may. Its answer is then dropped, the body read, and the application asked once more.
    """

    def get_environment(self) -> dict[str, Any]:
        request = self.request
        self._connection = request.headers.get("CONNECTION")
        request.headers["CONNECTION"] = "close"
        if request.chunked:
            # Nobody knows how long they would have become.
            request.headers["CONTENT_LENGTH"] = str(request.body_bytes_received)
        request.known = None
        environ: dict[str, Any] = super().get_environment()
        environ["wsgi.input"] = io.BytesIO()
        environ[ADMIT_BODY] = None if request.admitted else self._admit
        return environ

    def execute(self) -> None:
        super().execute()
        if self.request.error is None:
            # Nothing is read before this request is off the list of those that are answered.
            self.channel.request = self.request
            self.close_on_finish = False

    def write(self, data: bytes) -> None:
        if self.request.error is not None:
            super().write(data)
        else:
            self.content_bytes_written += len(data)

    def finish(self) -> None:
        if self.request.error is not None:
            super().finish()

    def _admit(self, most: int) -> None:
        headers = self.request.headers
        del headers["CONNECTION"]
        if self._connection is not None:
            headers["CONNECTION"] = self._connection
        self.request.admit(most)


def refusal(channel: Any, request: Any) -> ErrorTask | _TooLarge:
    """The task for a request that the parser has refused, or that the application has failed at."""
    if isinstance(request.error, RequestEntityTooLarge):
        return _TooLarge(channel, request)
    # What the application has failed at is known there.
    if not isinstance(request.error, InternalServerError):
        watching.refused(request.error.code)
    return ErrorTask(channel, request)
