"""The service as an ASGI application behind uvicorn, in a thread of the test."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from identity.asgi import Application


def server_of(app: Any, *, around: Callable[[Any], Any] = lambda app: app, **settings: Any) -> uvicorn.Server:
    """For the WSGI application of a world; ``around`` is a middleware."""
    own = {"log_config": None, "lifespan": "on", "proxy_headers": False, "server_header": False}
    return uvicorn.Server(uvicorn.Config(around(Application(app)), **{**own, **settings}))


@contextmanager
def serving_asgi(app: Any, bound: socket.socket, **settings: Any) -> Iterator[None]:
    """Serve on the socket until the block ends."""
    server = server_of(app, timeout_graceful_shutdown=5, **settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="asgi-server")
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(30)
