"""A WSGI application behind a real HTTP server, for clients that are not ours."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from waitress import create_server

#: As the ini files have it (security: limits of the HTTP layer).
LIMITS: dict[str, Any] = {
    "threads": 4,
    "connection_limit": 1000,
    "channel_timeout": 30,
    "max_request_header_size": 32768,
    "max_request_body_size": 1048576,
    "asyncore_use_poll": True,
    "clear_untrusted_proxy_headers": True,
    "expose_tracebacks": False,
    "ident": None,
}


def loopback_socket() -> socket.socket:
    """A socket bound to a free port of the loopback interface; the port is taken from then on."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.bind(("127.0.0.1", 0))
    return bound


@contextmanager
def serving(app: Any, bound: socket.socket) -> Iterator[None]:
    """Serve the application on the socket, from a thread, until the block ends."""
    server = create_server(app, sockets=[bound], **LIMITS)
    thread = threading.Thread(target=server.run, name="http-server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        # From the server's own loop: it is not made for being closed by another thread.
        server.trigger.pull_trigger(lambda: _close_all(server))
        thread.join(30)
        server.task_dispatcher.shutdown()
        bound.close()


def _close_all(server: Any) -> None:
    for dispatcher in list(server._map.values()):
        dispatcher.close()
