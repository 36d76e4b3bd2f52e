"""The server of the ini files' [server:main] under granian, which reads and writes HTTP in a thread without Python.

For use behind a proxy: it counts no connections per address, and waits as long as people like for them to read.
"""

import asyncio
import io
import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

# What granian's own servers are made of. It has no firm interface, hence the narrow versions in setup.cfg.
from granian._granian import CallbackScheduler, RSGIWorker, SocketHolder, WorkerSignal
from granian.http import HTTP1Settings
from waitress.adjustments import Adjustments
from waitress.proxy_headers import proxy_headers_middleware
from waitress.task import ThreadedTaskDispatcher

from identity import fibers, watching
from identity.server.framing import ADMIT_BODY
from identity.server.granian_settings import check, common, listening
from identity.server.rsgi import (
    Answer,
    Application,
    Exchange,
    Headers,
    Incoming,
    Refused,
    Scope,
    call,
    environment,
    length_of,
    linger,
    send,
)
from identity.server.serving import LAST_LOOKS, Serving, allow_files, own_limits, without_no_proxy

log = logging.getLogger(__name__)

#: How long a request whose headers are there may take to arrive as a whole, and one whose body was admitted.
_WHOLE_REQUEST, _LARGE_REQUEST = 60.0, 600.0
#: So many bytes of an admitted body are kept in memory, the others in a file.
_IN_MEMORY = 1 << 19
#: How long open connections are heard on once the process is told to stop: each answer then is the last.
_QUIET = 2.0
#: How long a request waits for others whose bodies are on their way.
_GATHERING = 0.0003
_LOOK_AROUND = 1.0
_NEVER = float("inf")


class Server(Serving):
    """Bound when made; answers once it serves.

    What waits for nothing but the storage is answered in fibers by the thread whose loop granian gives requests to, the
    rest by threads: as ``identity.server`` does it.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Take the address; raises OSError if it is taken, ValueError for a setting that does not fit."""
        limits, others = own_limits(settings)
        self._adjustments = adjustments = Adjustments(**without_no_proxy(others))
        check(adjustments, others)
        self._header_time = min(limits.header_timeout, adjustments.channel_timeout)
        self.socket = listening(adjustments)
        self._base = common(adjustments, self.socket)
        self._more: Headers = [("Server", adjustments.ident or "")]
        self._last: Headers = [*self._more, ("Connection", "close")]
        self._silence = float(adjustments.channel_timeout)
        self._arrived: deque[Any] = deque()
        self._incoming: set[Incoming] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.Handle | None = None
        self._in_loop: Callable[[str], bool] = lambda _: False
        self._application: Application
        self._loop: asyncio.AbstractEventLoop
        self._told = asyncio.Event()
        super().__init__(ThreadedTaskDispatcher(), adjustments.threads)
        allow_files(adjustments.connection_limit)

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
            self._fibers.close()
            self._end_threads()

    def _wake_to_stop(self) -> None:
        # Before it serves there is no loop, and afterwards a closed one.
        with suppress(AttributeError, RuntimeError):
            self._loop.call_soon_threadsafe(self._told.set)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._stopping:
            self._told.set()
        self._look_around()
        self._loop.add_reader(self._fibers.files.fileno(), self._look_at_files)
        ended = asyncio.Event()
        signalled = WorkerSignal()
        signalled.add_cb(partial(self._loop.call_soon_threadsafe, ended.set))
        self._worker().serve_async(_Scheduler(self._loop, self._take, None, None, None), self._loop, signalled)
        await self._told.wait()
        quiet_at = min(time.monotonic() + _QUIET, self._give_up_at)
        while time.monotonic() < min(quiet_at, self._give_up_at):
            await asyncio.sleep(LAST_LOOKS)
        signalled.set()
        while time.monotonic() < self._give_up_at and not ended.is_set():
            await asyncio.sleep(LAST_LOOKS)
        if not ended.is_set():
            log.warning("stopped with connections that had no answer yet")

    def _worker(self) -> Any:
        """granian's part: takes connections, reads and writes HTTP, in a thread of its own."""
        header_size = self._adjustments.max_request_header_size
        http = HTTP1Settings(header_read_timeout=1000 * self._header_time, max_buffer_size=max(8192, header_size))
        # granian closes the socket that it is given.
        holder: Any = SocketHolder
        held = holder(self.socket.detach(), False, self._adjustments.backlog)
        most = self._adjustments.connection_limit
        # One thread for HTTP, a few for what that waits for, one that wakes us with a body; no metrics, no WebSockets.
        worker: Any = RSGIWorker
        return worker(
            1, (None, held), None, 1, 8, 1, 30, most, "1", http, None, False, None,
            False, None, None, None, "tls1.3", None, [], False, (None, None),
        )  # fmt: skip

    def _take(self, watcher: Any) -> None:
        """A request has come, says granian's thread."""
        self._arrived.append(watcher)
        if len(self._arrived) == 1:
            self._wake()

    def _wake(self) -> None:
        """There is something to go on with, says another thread."""
        # Nobody is left to hear it once the process has given up.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._go_round)

    def _look_at_files(self) -> None:
        """The database has answered some fibers."""
        self._fibers.look_at_files()
        self._go_round()

    def _go_round(self) -> None:
        """Answer what has arrived, together, and go on with what waited."""
        working, arrived = self._fibers, self._arrived
        while arrived:
            watcher = arrived.popleft()
            self._begin(watcher.scope, watcher.proto)
        working.go_round()
        if self._alarm is not None:
            self._alarm.cancel()
        wait = working.until_alarm(_NEVER)
        self._alarm = self._loop.call_later(wait, self._go_round) if wait < _NEVER else None

    def _begin(self, scope: Scope, exchange: Exchange) -> None:
        fresh = partial(environment, scope, self._base, self._adjustments.max_request_header_size)
        try:
            environ = fresh()
            length = length_of(environ)
        except Refused as refusal:
            self._refuse(exchange, _told(refusal), expects="expect" in scope.headers)
            return
        if length >= self._adjustments.max_request_body_size:
            self._keep(self._answer_large(fresh, length, exchange))
        elif length:
            self._answer_with_body(environ, length, exchange)
        else:
            environ["wsgi.input"] = io.BytesIO()
            self._answer(environ, exchange)

    def _answer(self, environ: dict[str, Any], exchange: Exchange) -> None:
        """Have it answered, by a fiber or a thread."""
        work = partial(self._reply, environ, exchange)
        if self._in_loop(environ["PATH_INFO"]):
            self._fibers.arrived.append(work)
        else:
            self.threads.add_task(_Task(work))

    def _reply(self, environ: dict[str, Any], exchange: Exchange) -> None:
        answer = call(self._application, environ)
        send(exchange, answer, self._last if self._stopping else self._more)

    def _refuse(self, exchange: Exchange, answer: Answer, *, expects: bool = False) -> None:
        """Send the answer, and read nothing more but what is under way."""
        send(exchange, answer, self._last)
        if not expects:
            self._keep(linger(exchange))

    def _answer_with_body(self, environ: dict[str, Any], length: int, exchange: Exchange) -> None:
        body = environ["wsgi.input"] = io.BytesIO()

        def go_on(refused: Refused | None) -> None:
            if refused is not None:
                send(exchange, _told(refused), self._last)
                return
            self._answer(environ, exchange)
            if len(self._fibers.arrived) == 1:
                # Those whose bodies come just now are to share the round, and the commit.
                self._loop.call_later(_GATHERING if self._incoming else 0, self._go_round)

        self._receive(exchange, length, body, _WHOLE_REQUEST, go_on)

    def _receive(
        self, exchange: Exchange, length: int, into: Any, seconds: float, then: Callable[[Refused | None], None]
    ) -> None:
        def over(refused: Refused | None) -> None:
            self._incoming.discard(body)
            then(refused)

        body = Incoming(exchange, length, into, over, seconds=seconds, silence=self._silence)
        self._incoming.add(body)

    def _look_around(self) -> None:
        """Give up on bodies that take too long; once a second."""
        self.beat()
        now = time.monotonic()
        for body in list(self._incoming):
            body.give_up_if_late(now)
        self._loop.call_later(_LOOK_AROUND, self._look_around)

    async def _answer_large(self, fresh: Callable[[], dict[str, Any]], length: int, exchange: Exchange) -> None:
        """Have the application refuse what was not read, in its own words, unless it admits it of whoever sends it."""
        admitted: list[int] = []
        environ = fresh()
        expects = "HTTP_EXPECT" in environ
        answer = await self._ask(environ | {"wsgi.input": io.BytesIO(), ADMIT_BODY: admitted.append})
        if admitted and length > admitted[-1]:
            answer = await self._ask(fresh() | {"wsgi.input": io.BytesIO(), ADMIT_BODY: None})
        elif admitted:
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as body:
                whole: asyncio.Future[Refused | None] = self._loop.create_future()
                self._receive(exchange, length, body, _LARGE_REQUEST, whole.set_result)
                refused = await whole
                if refused is not None:
                    send(exchange, _told(refused), self._last)
                    return
                answer = await self._ask(fresh() | {"wsgi.input": body})
                send(exchange, answer, self._last if self._stopping else self._more)
            return
        self._refuse(exchange, answer, expects=expects)

    async def _ask(self, environ: dict[str, Any]) -> Answer:
        """The application's answer, from a thread."""
        answered: asyncio.Future[Answer] = self._loop.create_future()

        def ask() -> None:
            answer = call(self._application, environ)
            self._loop.call_soon_threadsafe(answered.set_result, answer)

        self.threads.add_task(_Task(ask))
        return await answered

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it; asyncio itself would forget it."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@dataclass(frozen=True, slots=True)
class _Task:
    """Waits for a thread."""

    service: Callable[[], None]

    def cancel(self) -> None:
        """Nobody waits any longer."""


class _Scheduler(CallbackScheduler):
    """Is told of each request, in granian's thread."""

    def __init__(self, _loop: object, take: Callable[[Any], None], *_: None) -> None:
        super().__init__()
        self._schedule_fn = take


def _told(refused: Refused) -> Answer:
    """The answer, whose status whoever watches is told."""
    watching.refused(refused.answer.status)
    return refused.answer
