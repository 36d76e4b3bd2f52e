"""WsgiToAsgiAdapter: an ASGI application behind WebTest, in an event loop of a thread."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_from_bytes

from identity.http.environ_keys import PEER_KEY

_LONGEST = 60.0
#: Header names as tests compare them; ASGI's are lower-case.
_NAMES = {b"x-request-id": "X-Request-ID", b"www-authenticate": "WWW-Authenticate", b"etag": "ETag"}


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """An event loop that runs in a thread until the process ends."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
    return loop


class WsgiToAsgiAdapter:
    """A WSGI application that sends each request to an ASGI application and returns its whole response."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.registry = application.registry

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        """Raises the application's exceptions."""
        length = environ.get("CONTENT_LENGTH") or ""
        body = environ["wsgi.input"].read(int(length)) if length else b""
        status, headers, content = send_request(self.application, scope_from_environ(environ), body)
        start_response(f"{status} {_phrase(status)}", headers)
        return [content]


def send_request(
    application: Any, scope: dict[str, Any], body: bytes = b""
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body of the response to one request."""
    return asyncio.run_coroutine_threadsafe(request_in_loop(application, scope, body), event_loop()).result(_LONGEST)


async def request_in_loop(
    application: Any, scope: dict[str, Any], body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Like ``send_request``, in the running event loop."""
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []
    disconnected = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    start, *pieces = sent
    headers = [
        (_NAMES.get(name) or name.decode("latin-1").title(), value.decode("latin-1"))
        for name, value in start["headers"]
        if name != b"server"
    ]
    return start["status"], headers, b"".join(piece.get("body", b"") for piece in pieces)


def scope_from_environ(environ: dict[str, Any]) -> dict[str, Any]:
    headers = [
        (key.removeprefix("HTTP_").replace("_", "-").lower().encode(), str(value).encode("latin-1"))
        for key, value in environ.items()
        if key.startswith("HTTP_") or (key in ("CONTENT_LENGTH", "CONTENT_TYPE") and value)
    ]
    client = environ.get("REMOTE_ADDR", "")
    peer = environ.get(PEER_KEY, client)
    if peer != client:
        headers.append((b"x-forwarded-for", client.encode()))
    path = environ["PATH_INFO"].encode("latin-1")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": environ.get("SERVER_PROTOCOL", "HTTP/1.1").removeprefix("HTTP/"),
        "method": environ["REQUEST_METHOD"],
        "scheme": "http",
        "path": path.decode("utf-8", "replace"),
        "raw_path": quote_from_bytes(path).encode(),
        "query_string": environ.get("QUERY_STRING", "").encode("latin-1"),
        "root_path": "",
        "headers": headers,
        "client": (peer, 1),
        "server": ("127.0.0.1", 80),
    }


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
