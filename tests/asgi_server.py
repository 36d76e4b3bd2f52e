"""Runs the ASGI application in a thread of the test: under uvicorn, or in the worker of `identity serve`."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import uvicorn
from gunicorn.config import Config
from gunicorn.sock import TCPSocket

from identity.asgi import AsgiApplication
from identity.server_settings import DEFAULTS
from identity.serving.asgi_worker import AsgiWorker
from identity.serving.gunicorn_server import GunicornLogger


def server_of(app: Any, *, around: Callable[[Any], Any] = lambda app: app, **settings: Any) -> uvicorn.Server:
    """A uvicorn server for the WSGI application of a world; ``around`` wraps it in ASGI middleware."""
    fixed = {"log_config": None, "lifespan": "on", "proxy_headers": False, "server_header": False}
    return uvicorn.Server(uvicorn.Config(around(AsgiApplication(app)), **{**fixed, **settings}))


@contextmanager
def serving_asgi(app: Any, bound: socket.socket, **settings: Any) -> Iterator[None]:
    """Serve on the socket until the block ends."""
    with running_server(server_of(app, timeout_graceful_shutdown=5, **settings), bound):
        yield


@contextmanager
def running_server(server: uvicorn.Server, bound: socket.socket) -> Iterator[None]:
    """Serve on the socket until the block ends."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="asgi-server")
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(30)


class _Worker(AsgiWorker):
    """Installs no signal handlers: only the main thread may."""

    is_serving = False

    def notify(self) -> None:
        """Record the heartbeat; there is no arbiter."""
        self.is_serving = True

    def run(self) -> None:
        self._setup_event_loop()
        super().run()


@contextmanager
def serving_in_worker(
    app: Any, bound: socket.socket, *, around: Callable[[Any], Any] = lambda app: app
) -> Iterator[None]:
    """Like ``serving_asgi``, but with the worker of `identity serve`."""
    config = Config()
    for name, value in DEFAULTS.items():
        config.set(name, value)
    logger = GunicornLogger(config)
    listener = TCPSocket(bound.getsockname(), config, logger, fd=os.dup(bound.fileno()))
    worker = _Worker(0, os.getppid(), [listener], SimpleNamespace(), config.timeout, config, logger)
    worker.asgi = around(AsgiApplication(app))
    thread = threading.Thread(target=worker.run, name="asgi-worker")
    thread.start()
    while thread.is_alive() and not worker.is_serving:
        time.sleep(0.01)
    try:
        yield
    finally:
        worker.loop.call_soon_threadsafe(worker.handle_exit_signal)
        thread.join(30)
        worker.tmp.close()
        bound.close()
