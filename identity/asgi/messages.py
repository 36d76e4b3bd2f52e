"""Types of the messages between an ASGI server and the application."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

AsgiMessage = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
Headers = list[tuple[str, str]]

#: Without it gunicorn discloses its name and version.
_SERVER = (b"server", b"identity")


@dataclass(slots=True)
class AsgiResponse:
    """A body, then ``chunks``, which are taken one by one in threads and closed if they can be."""

    status: int
    headers: Headers
    body: bytes
    chunks: Iterable[bytes] | None = None


class ClientDisconnected(Exception):
    """The client closed the connection before the request was complete."""


async def start_response(send: Send, status: int, headers: Headers, *, close: bool = False) -> None:
    """Send status and headers. Raises ValueError for a header that could be read as two."""
    raw = [(_encode_name(name), _encode_value(value)) for name, value in headers]
    raw.append(_SERVER)
    if close:
        raw.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def send_body(send: Send, body: bytes, *, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


@lru_cache(200)
def _encode_name(name: str) -> bytes:
    return name.lower().encode("latin-1")


def _encode_value(value: str) -> bytes:
    if "\n" in value or "\r" in value:
        raise ValueError("a header holds a line break")
    return value.encode("latin-1")
