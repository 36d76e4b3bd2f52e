"""gunicorn's ASGI worker with fixes for version 27.

The arbiter imports this module, too. Only workers import the service, so that SIGHUP loads new code.
"""

import asyncio
import faulthandler
import gc
import os
import sys
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.asgi import protocol
from gunicorn.workers import gasgi

from identity.server_settings import DEFAULTS, PROXY_SETTINGS, PROXY_UNSUPPORTED

#: Seconds that an idle connection stays open during a stop, because a request may already be on its way.
_IDLE_CLOSE_DELAY = 1.0
#: Seconds of graceful_timeout reserved for shutting down the application.
_SHUTDOWN_POLL_TIMEOUT = 2.0
#: Iterations of the event loop until an accepted connection belongs to the worker: task, transport, protocol.
_ACCEPT_LOOP_ITERATIONS = 3
#: Seconds after which a busy thread yields to the event loop; Python's default of 5 ms would be noticeable.
_SWITCH_INTERVAL = 0.0005
#: More new objects than concurrent requests allocate, before a garbage collection.
_GC_THRESHOLD = 10_000


class AsgiConnection(protocol.ASGIProtocol):  # type: ignore[misc]
    _closed: bool
    _keepalive: float
    _discarded_bytes: int | None = None
    _lingers = False

    def __init__(self, worker: "AsgiWorker") -> None:
        super().__init__(worker)
        # gunicorn's own hook logs the path of each request at DEBUG; paths of mailed links hold secrets.
        self._pre_request = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.worker.connections.add(self)
        super().connection_made(transport)
        if self.worker.stopping is not None:
            self.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.worker.connections.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Discards the rest of a refused request."""
        if self._discarded_bytes is None:
            super().data_received(data)
            return
        self._discarded_bytes -= len(data)
        if self._discarded_bytes < 0:
            self.transport.close()

    def stop(self) -> None:
        """Close the connection shortly after it becomes idle."""
        if self._keepalive:
            self._keepalive = _IDLE_CLOSE_DELAY
        if self._current_request is None:
            self._arm_keepalive_timer()

    def _keepalive_timeout(self) -> None:
        # A request may have arrived in the same iteration of the loop.
        if self._current_request is None:
            super()._keepalive_timeout()

    def _cancel_task_if_pending(self) -> None:
        # Called when the client has left; a request that has begun runs to its end.
        if self._awaiting_request:
            super()._cancel_task_if_pending()

    def _will_close(self, request: Any, response_requires_close: bool) -> bool:
        return self.worker.stopping is not None or super()._will_close(request, response_requires_close)

    def _send_response_start(self, status: int, headers: Any, request: Any, close: bool = False) -> None:
        if (b"connection", b"close") in headers:
            # gunicorn would forward it and answer the next request on the connection (RFC 9112 §9.6).
            self._keepalive, self._lingers = 0, True
        super()._send_response_start(status, headers, request, close)

    def _send_error_response(self, status: int, *arguments: Any, **headers: Any) -> None:
        from identity import instrumentation

        # The application was not called, so the request is counted here.
        instrumentation.record_server_refusal(status)
        self._lingers = True
        super()._send_error_response(status, *arguments, **headers)

    def _feed_callback_parser(self, data: bytes) -> bool:
        try:
            return bool(super()._feed_callback_parser(data))
        except ValueError:
            # From the Python parser, for numbers that int() refuses.
            self._send_error_response(400, "Bad Request")
            self._close_transport()
            return False

    def _close_transport(self) -> None:
        """Read the rest of a refused request before closing (RFC 9112 §9.6): closing with unread bytes would reset
        the connection.
        """
        receiver = self._body_receiver
        lingers = self._lingers or (receiver is not None and not receiver._complete)
        if self._closed or not lingers or self.transport.is_closing() or not self.transport.can_write_eof():
            super()._close_transport()
            return
        from identity.asgi.request_body import DISCARD_TIMEOUT, MAX_DISCARDED_BYTES

        self._closed = True
        self._discarded_bytes = MAX_DISCARDED_BYTES
        self.transport.write_eof()
        self._resume_reading()
        self.worker.loop.call_later(DISCARD_TIMEOUT, self.transport.close)


class AsgiWorker(gasgi.ASGIWorker):  # type: ignore[misc]
    """Stops without losing a request: accepts no new connections, answers pending requests and announces the close."""

    asgi: Any

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connections: set[AsgiConnection] = set()
        self.stopping: asyncio.Task[None] | None = None
        self._serving: asyncio.Task[None] | None = None

    def load_wsgi(self) -> None:
        """Load the service, and record in the heartbeat file if the storage allows only one worker.

        Raises SystemExit with the code at which gunicorn's arbiter stops, instead of retrying forever.
        """
        try:
            if self.cfg.proxy_protocol != "off":
                raise SystemExit(f"identity cannot start. proxy_protocol {PROXY_UNSUPPORTED}.")
            super().load_wsgi()
        except SystemExit as problem:
            if isinstance(problem.code, str):
                print(problem.code, file=sys.stderr, flush=True)  # noqa: T201
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from None
        for name in PROXY_SETTINGS:
            self.cfg.set(name, DEFAULTS[name])
        # Not imported here: loading [app:main] has imported it.
        pyramid = sys.modules.get("pyramid.router")
        if pyramid is not None and isinstance(self.asgi, pyramid.Router):
            from identity.asgi import AsgiApplication

            self.asgi = AsgiApplication(self.asgi)
        sys.setswitchinterval(_SWITCH_INTERVAL)
        gc.set_threshold(_GC_THRESHOLD)
        identity = getattr(getattr(self.asgi, "registry", None), "application", None)
        if identity is not None:
            alone = identity.backend.has_single_writer or not identity.backend.is_concurrent
            if alone:
                os.write(self.tmp.fileno(), b"1")
            identity.set_process_count(1 if alone else self.cfg.workers, getattr(self.app, "worker_replacements", None))

    def init_signals(self) -> None:
        """A hung worker writes its stack to stderr before the arbiter kills it."""
        super().init_signals()
        faulthandler.enable()

    def handle_exit_signal(self) -> None:
        """SIGTERM."""
        if not self.servers:
            self.alive = False
        elif self.stopping is None:
            self.stopping = self.loop.create_task(self._stop())

    async def _serve(self) -> None:
        self._serving = asyncio.current_task()
        # The connection class of gunicorn's worker, and its Server header.
        gasgi.ASGIProtocol = AsgiConnection
        # gunicorn caches the result on the class that is asked, but reads it from its own class: a subclass would never
        # use the parser in C.
        protocol.ASGIProtocol._check_h1c_protocol_available()
        protocol._CACHED_SERVER_HEADER = b""
        await super()._serve()

    async def _stop(self) -> None:
        # When a server closes, asyncio drops connections that it has accepted but not yet handed on.
        for socket in self.sockets:
            self.loop.remove_reader(socket.fileno())
        for _ in range(_ACCEPT_LOOP_ITERATIONS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in self.connections:
            connection.stop()
        give_up_at = self.loop.time() + max(self.cfg.graceful_timeout - _SHUTDOWN_POLL_TIMEOUT, _IDLE_CLOSE_DELAY)
        while self.connections and self.loop.time() < give_up_at:
            await asyncio.sleep(0.05)
        if self.connections:
            self.log.warning("%d connections were still busy and are cut off", len(self.connections))
        for connection in list(self.connections):
            connection.transport.abort()
        if self.alive and self._serving is not None:
            self.alive = False
            # It sleeps for a second between heartbeats.
            self._serving.cancel()
