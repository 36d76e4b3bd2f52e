"""A small ASGI and WSGI application for the tests of servers; it imports nothing of the service."""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: The response of /stream has this many pieces of this size, more than all buffers on the way hold.
PIECES, PIECE = 1024, bytes(1 << 16)
#: The seconds that /slow takes, and the seconds for which /stuck blocks the event loop or its thread.
SLOW, STUCK = 2.0, 600.0

#: Read at import like code, so only a reloaded application returns the new value.
RELEASE = Path(os.environ["CONFORMANCE_RELEASE"]).read_text() if "CONFORMANCE_RELEASE" in os.environ else "none"


class StreamProgress:
    """The progress of this process's requests, returned by /progress."""

    sent = received = begun = finished = 0


def described(method: str, path: str, body: bytes, client: str, scheme: str, headers: dict[str, str]) -> Message:
    """The request as the application received it."""
    digest = hashlib.sha256(body).hexdigest()
    description = {
        "method": method,
        "path": path,
        "length": len(body),
        "digest": digest,
        "client": client,
        "scheme": scheme,
    }
    return {**description, "headers": headers, "release": RELEASE, "pid": os.getpid()}


def progress() -> bytes:
    """The progress as JSON."""
    return json.dumps(
        {name: getattr(StreamProgress, name) for name in ("sent", "received", "begun", "finished")}
    ).encode()


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await _ASGI.get(scope["path"], _echo)(scope, receive, send)
        return
    while scope["type"] == "lifespan":
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if the client disconnected before its end."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        StreamProgress.received += len(pieces[-1])
        if not message.get("more_body"):
            return b"".join(pieces)


async def _respond(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _echo(scope: Message, receive: Receive, send: Send) -> None:
    if (body := await _body(receive)) is None:
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    client = (scope.get("client") or ("",))[0]
    description = described(scope["method"], scope["path"], body, client, scope.get("scheme", "http"), headers)
    await _respond(send, 200, json.dumps(description).encode())


async def _refuse(scope: Message, receive: Receive, send: Send) -> None:
    """Respond without reading the body."""
    await _respond(send, 413, b"too large")


async def _stream(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(PIECES):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        StreamProgress.sent += len(PIECE)
        # Yield to other tasks, as an application that awaits each piece would.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _unread(scope: Message, receive: Receive, send: Send) -> None:
    """Read the body after a delay."""
    StreamProgress.begun += 1
    await asyncio.sleep(SLOW)
    await _echo(scope, receive, send)


async def _slow(scope: Message, receive: Receive, send: Send) -> None:
    StreamProgress.begun += 1
    await asyncio.sleep(SLOW)
    StreamProgress.finished += 1
    await _respond(send, 200, b"slow")


async def _drip(scope: Message, receive: Receive, send: Send) -> None:
    """Start the response, and complete it after a delay."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"dr", "more_body": True})
    await asyncio.sleep(SLOW)
    await send({"type": "http.response.body", "body": b"ip"})


async def _long(scope: Message, receive: Receive, send: Send) -> None:
    """Takes three times as long as /slow; a stopping server must let it complete."""
    StreamProgress.begun += 1
    await asyncio.sleep(3 * SLOW)
    StreamProgress.finished += 1
    await _respond(send, 200, b"long")


async def _stuck(scope: Message, receive: Receive, send: Send) -> None:
    time.sleep(STUCK)


async def _two_headers(scope: Message, receive: Receive, send: Send) -> None:
    await _respond(send, 200, b"", (b"x-one", b"a\r\nset-cookie: b=c"))


async def _close(scope: Message, receive: Receive, send: Send) -> None:
    await _respond(send, 200, b"last", (b"connection", b"close"))


async def _nothing(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _fails(scope: Message, receive: Receive, send: Send) -> None:
    raise RuntimeError("a secret of the application")


async def _short(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"one"})


async def _progress(scope: Message, receive: Receive, send: Send) -> None:
    await _respond(send, 200, progress())


_ASGI: dict[str, Callable[[Message, Receive, Send], Awaitable[None]]] = {
    "/refuse": _refuse,
    "/stream": _stream,
    "/unread": _unread,
    "/slow": _slow,
    "/drip": _drip,
    "/long": _long,
    "/stuck": _stuck,
    "/two-headers": _two_headers,
    "/close": _close,
    "/nothing": _nothing,
    "/fails": _fails,
    "/short": _short,
    "/progress": _progress,
}


def wsgi_application(environ: Message, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The same for WSGI."""
    path = environ["PATH_INFO"]
    if path == "/stream":
        start_response("200 OK", [])
        return _wsgi_stream()
    if path == "/drip":
        start_response("200 OK", [("Content-Length", "4")])
        return _wsgi_drip()
    if path == "/stuck":
        time.sleep(STUCK)
    if path == "/fails":
        raise RuntimeError("a secret of the application")
    if path == "/nothing":
        start_response("204 No Content", [])
        return []
    body, status, headers = b"", "200 OK", []
    if path == "/refuse":
        status, body = "413 Content Too Large", b"too large"
    elif path == "/two-headers":
        headers = [("X-One", "a\r\nSet-Cookie: b=c")]
    elif path == "/short":
        start_response(status, [("Content-Length", "6")])
        return [b"one"]
    elif path == "/progress":
        body = progress()
    elif path in {"/slow", "/long"}:
        StreamProgress.begun += 1
        time.sleep(SLOW if path == "/slow" else 3 * SLOW)
        StreamProgress.finished += 1
        body = path[1:].encode()
    else:
        if path == "/unread":
            StreamProgress.begun += 1
            time.sleep(SLOW)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        StreamProgress.received += len(body)
        lines = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        client, scheme = environ.get("REMOTE_ADDR", ""), environ["wsgi.url_scheme"]
        body = json.dumps(described(environ["REQUEST_METHOD"], path, body, client, scheme, lines)).encode()
    start_response(status, [("Content-Length", str(len(body))), *headers])
    return [body]


def _wsgi_stream() -> Iterator[bytes]:
    for _ in range(PIECES):
        yield PIECE
        StreamProgress.sent += len(PIECE)


def _wsgi_drip() -> Iterator[bytes]:
    yield b"dr"
    time.sleep(SLOW)
    yield b"ip"
