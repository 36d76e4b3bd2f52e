"""The smallest ASGI application: responds with its process ID, a value of its ini file and the version of its code."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from code_that_changes import CODE  # type: ignore[import-not-found]

Message = dict[str, Any]


def main(_global_config: dict[str, str], greeting: str = "", single: str = "", **_: str) -> Any:
    """The ``paste.app_factory`` entry point."""
    if greeting == "broken":
        raise SystemExit("identity cannot start. The greeting is broken.")
    return MinimalApplication(greeting, single=bool(single))


class MinimalApplication:
    def __init__(self, greeting: str, *, single: bool) -> None:
        self._greeting = greeting
        identity = SimpleNamespace(
            backend=SimpleNamespace(has_single_writer=single, is_concurrent=True), set_process_count=lambda *_: None
        )
        self.registry = SimpleNamespace(application=identity)

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/hangs":
            await asyncio.sleep(2)
        if scope["path"] == "/blocks":
            os.read(os.pipe()[0], 1)
        if scope["path"] == "/dies":
            os._exit(7)
        body = f"{os.getpid()} {self._greeting} {CODE}".encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _live(
        self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        await receive()
        if self._greeting == "fails":
            await send({"type": "lifespan.startup.failed", "message": "identity cannot start. The greeting fails."})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("stopped", flush=True)  # noqa: T201
        await send({"type": "lifespan.shutdown.complete"})
