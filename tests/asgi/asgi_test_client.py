"""Sends one request to the ASGI application, with control over what arrives when, and records the response."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from identity.asgi import AsgiApplication
from identity.testing.asgi_adapter import event_loop, scope_from_environ

FORM = b"application/x-www-form-urlencoded"
Headers = list[tuple[bytes, bytes]]


class AsgiTestClient:
    """A connection with one request, whose body the test sends in pieces."""

    def __init__(self, application: AsgiApplication, path: str, headers: Headers = [], **scope: Any) -> None:  # noqa: B006
        environ = {"REQUEST_METHOD": scope.pop("method", "POST"), "PATH_INFO": path, "REMOTE_ADDR": "192.0.2.1"}
        self.scope = {**scope_from_environ(environ), **scope}
        self.scope["headers"] = headers
        self.sent: list[dict[str, Any]] = []
        self.received = 0
        #: Stop reading after this number of response messages; None reads them all.
        self.takes: int | None = None
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._disconnected = asyncio.Event()
        self._application = application

    def send(self, body: bytes = b"", *, more: bool = False) -> None:
        self._put({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        self._put({"type": "http.disconnect"})
        event_loop().call_soon_threadsafe(self._disconnected.set)

    def _put(self, message: dict[str, Any]) -> None:
        event_loop().call_soon_threadsafe(self._incoming.put_nowait, message)

    def begin(self) -> Any:
        return asyncio.run_coroutine_threadsafe(self._run(), event_loop())

    def ask(self, body: bytes = b"") -> "AsgiTestClient":
        self.send(body)
        self.begin().result(30)
        return self

    async def _run(self) -> None:
        async def receive() -> dict[str, Any]:
            message = await self._incoming.get()
            self.received += len(message.get("body", b""))
            return message

        async def send(message: Any) -> None:
            self.sent.append(message)
            if len(self.sent) == self.takes:
                await self._disconnected.wait()

        await self._application(self.scope, receive, send)

    @property
    def status(self) -> int:
        found: int = self.sent[0]["status"]
        return found

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    def header(self, name: str) -> str | None:
        return next((v.decode() for n, v in self.sent[0]["headers"] if n == name.encode()), None)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("that took too long")
