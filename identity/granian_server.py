"""The server of the ini files' [server:main] under granian, which reads and writes HTTP in a thread without Python.

For use behind a proxy: it counts no connections per address, and waits as long as people like for them to read.
"""

import asyncio
import io
import logging
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server as Embedded
from waitress.adjustments import Adjustments
from waitress.proxy_headers import proxy_headers_middleware
from waitress.task import ThreadedTaskDispatcher

from identity import fibers
from identity.framing import ADMIT_BODY
from identity.rsgi import (
    Answer,
    Application,
    Exchange,
    Headers,
    Refused,
    Scope,
    call,
    environment,
    length_of,
    linger,
    read,
    send,
)
from identity.server import GRACE, allow_files, own_limits, without_no_proxy

log = logging.getLogger(__name__)

#: How long a request whose headers are there may take to arrive as a whole, and one whose body was admitted.
_WHOLE_REQUEST, _LARGE_REQUEST = 60.0, 600.0
#: So many bytes of an admitted body are kept in memory, the others in a file.
_IN_MEMORY = 1 << 19
#: How long open connections are heard on once the process is told to stop: each answer then is the last.
_QUIET = 2.0
_LAST_LOOKS = 0.1
_NEVER = float("inf")

#: The settings of waitress that mean the same here, or the same that they mean there: nothing.
_UNDERSTOOD = frozenset(
    {
        "listen", "host", "port", "ipv4", "ipv6", "sockets", "backlog", "threads", "trusted_proxy",
        "trusted_proxy_count", "trusted_proxy_headers", "log_untrusted_proxy_headers", "clear_untrusted_proxy_headers",
        "url_scheme", "server_name", "ident", "connection_limit", "channel_timeout", "max_request_header_size",
        "max_request_body_size", "expose_tracebacks", "asyncore_use_poll",
    }
)  # fmt: skip


class Server:
    """Bound when made; answers once it serves.

    What waits for nothing but the storage is answered in fibers by the thread whose loop granian gives requests to, the
    rest by threads: as ``identity.server`` does it.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Take the address; raises OSError if it is taken, ValueError for a setting that does not fit."""
        limits, others = own_limits(settings)
        self._adjustments = adjustments = Adjustments(**without_no_proxy(others))
        _check(adjustments, others)
        self._header_time = min(limits.header_timeout, adjustments.channel_timeout)
        self.socket = _listening(adjustments)
        self._base = _base(adjustments, self.socket)
        self._more: Headers = [("Server", adjustments.ident or "")]
        self._threads = ThreadedTaskDispatcher()
        self._alarm: asyncio.Handle | None = None
        self._in_loop: Callable[[str], bool] = lambda _: False
        self._aside = 0
        self._counting = threading.Lock()
        self._application: Application
        self._serves = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()
        self._stopping = False
        self._give_up_at = _NEVER
        self._make_room(0)
        allow_files(adjustments.connection_limit)

    def obey_signals(self) -> None:
        """Stop on SIGTERM and Ctrl-C."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self._signalled(number))

    def announce(self) -> None:
        """Say in the log where it listens."""
        host, port = self.socket.getsockname()[:2]
        log.info("Serving on http://%s:%d", f"[{host}]" if ":" in host else host, port)

    def serve(self, application: Application) -> None:
        """Answer until told to stop, then finish what is being answered and return."""
        adjustments = self._adjustments
        in_loop = getattr(getattr(application, "registry", None), "in_loop", None)
        self._fibers = fibers.Fibers(self._wake)
        if in_loop is not None:
            self._in_loop = in_loop.takes
            self._fibers = fibers.Fibers(self._wake, in_loop.apart, most=in_loop.most)
        self._application = proxy_headers_middleware(
            application,
            trusted_proxy=adjustments.trusted_proxy,
            trusted_proxy_count=adjustments.trusted_proxy_count,
            trusted_proxy_headers=adjustments.trusted_proxy_headers,
            clear_untrusted=adjustments.clear_untrusted_proxy_headers,
            log_untrusted=adjustments.log_untrusted_proxy_headers,
        )
        self._serves = True
        try:
            asyncio.run(self._run())
        finally:
            self._threads.shutdown(timeout=max(_LAST_LOOKS, self._give_up_at - time.monotonic()))

    def stop(self, grace: float = GRACE) -> None:
        """Have ``serve`` come to its end, after as many seconds at most; told twice, it waits for nobody any longer."""
        self._give_up_at = time.monotonic() + (0 if self._stopping else grace)
        self._stopping = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told.set)

    @contextmanager
    def stepping_aside(self) -> Iterator[None]:
        """While a thread waits for a password's hash, or is at a large document, another one answers in its place."""
        self._make_room(1)
        try:
            yield
        finally:
            self._make_room(-1)

    def _make_room(self, more: int) -> None:
        with self._counting:
            self._aside += more
            if not self._stopping:
                self._threads.set_thread_count(self._adjustments.threads + self._aside)

    def _signalled(self, number: int) -> None:
        if not self._serves:
            raise SystemExit(128 + number)
        self.stop()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._stopping:
            self._told.set()
        self._loop.add_reader(self._fibers.files.fileno(), self._look_at_files)
        server = _OnSocket(
            self._handle,
            self.socket,
            backpressure=self._adjustments.connection_limit,
            http1_settings=HTTP1Settings(
                header_read_timeout=1000 * self._header_time,
                max_buffer_size=max(8192, self._adjustments.max_request_header_size),
            ),
        )
        serving = asyncio.create_task(server.serve())
        told = asyncio.create_task(self._told.wait())
        await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
        quiet_at = time.monotonic() + _QUIET
        while time.monotonic() < min(quiet_at, self._give_up_at) and not serving.done():
            await asyncio.sleep(_LAST_LOOKS)
        server.stop()  # type: ignore[no-untyped-call]
        while time.monotonic() < self._give_up_at and not serving.done():
            await asyncio.wait({serving}, timeout=_LAST_LOOKS)
        if serving.done():
            await serving
        else:
            log.warning("stopped with connections that had no answer yet")
            # What is cut short now has nothing to say that matters.
            self._loop.set_exception_handler(lambda *_: None)

    async def _handle(self, scope: Scope, exchange: Exchange) -> None:
        try:
            answer, complete = await self._answer(scope, exchange)
        except Refused as refusal:
            answer, complete = refusal.answer, False
        more = self._more if complete and not self._stopping else [*self._more, ("Connection", "close")]
        send(exchange, answer, more)
        if not complete and "expect" not in scope.headers:
            await linger(exchange)

    async def _answer(self, scope: Scope, exchange: Exchange) -> tuple[Answer, bool]:
        """What is to be answered, and whether the body was read. Raises Refused."""
        fresh = partial(environment, scope, self._base, self._adjustments.max_request_header_size)
        environ = fresh()
        silence = float(self._adjustments.channel_timeout)
        length = length_of(environ)
        body: Any = io.BytesIO()
        if length >= self._adjustments.max_request_body_size:
            # The application refuses what was not read, in its own words, unless it takes more from whoever sends it.
            admitted: list[int] = []
            answer = await self._ask(environ | {"wsgi.input": body, ADMIT_BODY: admitted.append})
            if not admitted:
                return answer, False
            environ = fresh()
            if length > admitted[-1]:
                return await self._ask(environ | {"wsgi.input": body}), False
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as body:
                await read(exchange, length, body, seconds=_LARGE_REQUEST, silence=silence)
                return await self._ask(environ | {"wsgi.input": body}), True
        if length:
            await read(exchange, length, body, seconds=_WHOLE_REQUEST, silence=silence)
        environ["wsgi.input"] = body
        return await self._ask(environ, in_loop=self._in_loop(environ["PATH_INFO"])), True

    async def _ask(self, environ: dict[str, Any], *, in_loop: bool = False) -> Answer:
        """The application's answer."""
        loop = asyncio.get_running_loop()
        request = _Request(partial(call, self._application, environ), loop, loop.create_future())
        if in_loop:
            self._fibers.arrived.append(request.answer)
            if len(self._fibers.arrived) == 1:
                loop.call_soon(self._go_round)
        else:
            self._threads.add_task(request)
        return await request.answered

    def _wake(self) -> None:
        """A fiber can go on, says another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._go_round)

    def _look_at_files(self) -> None:
        """The database has answered some fibers."""
        self._fibers.look_at_files()
        self._go_round()

    def _go_round(self) -> None:
        """Answer what has arrived, together, and go on with what waited."""
        working = self._fibers
        working.go_round()
        if self._alarm is not None:
            self._alarm.cancel()
        wait = working.until_alarm(_NEVER)
        self._alarm = asyncio.get_running_loop().call_later(wait, self._go_round) if wait < _NEVER else None


@dataclass(frozen=True, slots=True)
class _Request:
    """Waits for a fiber, or for a thread."""

    ask: Callable[[], Answer]
    loop: asyncio.AbstractEventLoop
    answered: "asyncio.Future[Answer]"

    def answer(self) -> None:
        """Have it answered here."""
        self._tell(self.ask())

    def service(self) -> None:
        """Have it answered by a thread."""
        self.loop.call_soon_threadsafe(self._tell, self.ask())

    def cancel(self) -> None:
        """Nobody waits any longer."""

    def _tell(self, answer: Answer) -> None:
        if not self.answered.done():
            self.answered.set_result(answer)


class _OnSocket(Embedded):
    """granian in this process, on a socket that listens already."""

    def __init__(self, answer: Callable[..., Any], listening: socket.socket, **options: Any) -> None:
        self._listening = listening
        super().__init__(
            answer,
            interface=Interfaces.RSGI,
            http=HTTPModes.http1,
            websockets=False,
            log_level=LogLevels.error,
            # What the ini file says of logging stays.
            log_dictconfig={"incremental": True, "handlers": {}, "loggers": {}},
            **options,
        )

    def _init_shared_socket(self) -> None:
        # granian closes what it is given.
        holder: Any = SocketHolder
        self._shd: Any = holder(self._listening.detach(), False, self.backlog)


def _check(adjustments: Adjustments, settings: Mapping[str, Any]) -> None:
    """Raise ValueError for what granian cannot do."""
    for name in sorted(set(settings) - _UNDERSTOOD):
        raise ValueError(f"granian knows nothing like {name}: leave it out, or serve with waitress")
    if adjustments.expose_tracebacks:
        raise ValueError("expose_tracebacks: granian shows none, so it must be false")
    if not adjustments.sockets and len(adjustments.listen) != 1:
        raise ValueError("listen: granian takes one address; localhost may be two")
    where = [one.getsockname() for one in adjustments.sockets] or [one[3] for one in adjustments.listen]
    if adjustments.trusted_proxy is None and not all(ip_address(one[0]).is_loopback for one in where):
        raise ValueError(
            "connections_per_address: granian does not count them. Put a proxy that does in front and name it in"
            " trusted_proxy, or listen on a loopback address, or serve with waitress"
        )


def _listening(adjustments: Adjustments) -> socket.socket:
    bound: socket.socket
    if adjustments.sockets:
        [bound] = adjustments.sockets
    else:
        [(family, kind, protocol, address)] = adjustments.listen
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    bound.listen(adjustments.backlog)
    return bound


def _base(adjustments: Adjustments, bound: socket.socket) -> dict[str, Any]:
    """What all requests have in common."""
    return {
        "SERVER_NAME": adjustments.server_name,
        "SERVER_PORT": str(bound.getsockname()[1]),
        "SERVER_SOFTWARE": adjustments.ident,
        "SCRIPT_NAME": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": adjustments.url_scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
