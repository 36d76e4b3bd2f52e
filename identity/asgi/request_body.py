"""Request bodies: read by the event loop, within a size and time limit."""

import asyncio
from contextlib import suppress
from typing import IO

from identity.asgi.messages import ClientDisconnected, Receive, Send, send_body

#: Timeout in seconds of a whole body, and of a document.
BODY_TIMEOUT, DOCUMENT_TIMEOUT = 60.0, 600.0
#: Seconds and bytes for which the rest of a refused body is read before the connection closes (RFC 9112 §9.6), and
#: seconds without a byte after which no more is expected.
DISCARD_TIMEOUT, MAX_DISCARDED_BYTES, _DISCARD_READ_TIMEOUT = 5.0, 64 << 20, 1.0


class BodyTimeout(Exception):
    """The body took too long."""


class RequestBody:
    def __init__(self, receive: Receive, length: int | None) -> None:
        self._receive = receive
        self._length = length
        self._chunks: list[bytes] = []
        self._size = 0
        self.is_complete = length == 0

    async def read(self, limit: int) -> bytes | None:
        """The whole body, or None if it is longer than ``limit``: then it is not read to its end.

        Raises BodyTimeout and ClientDisconnected.
        """
        if self.is_complete:
            return b""
        if self._length is not None and self._length > limit:
            return None
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                while not self.is_complete and self._size <= limit:
                    self._chunks.append(await self._next())
        except TimeoutError:
            raise BodyTimeout from None
        return b"".join(self._chunks) if self._size <= limit else None

    async def copy_to(self, file: IO[bytes], limit: int) -> bool:
        """Write the body to the file; False if it is longer than ``limit``. Raises BodyTimeout and
        ClientDisconnected.
        """
        if self._length is not None and self._length > limit:
            return False
        file.write(b"".join(self._chunks))
        self._chunks.clear()
        try:
            async with asyncio.timeout(DOCUMENT_TIMEOUT):
                while not self.is_complete and self._size <= limit:
                    file.write(await self._next())
        except TimeoutError:
            raise BodyTimeout from None
        file.seek(0)
        return self._size <= limit

    @property
    def size(self) -> int:
        """Its size in bytes; for a chunked body that was not read to its end, the minimum."""
        return self._size if self._length is None else self._length

    async def discard(self, send: Send, *, expected: bool) -> None:
        """Discard the rest, within limits, and end the response, all of which was sent with ``more``.

        A server closes the connection after a response that says so. With unread bytes the system resets it, and
        clients and proxies lose the response. ``expected``: the client waits for 100 Continue before it sends the
        body.
        """
        most = self._size + MAX_DISCARDED_BYTES
        with suppress(TimeoutError, ClientDisconnected):
            async with asyncio.timeout(DISCARD_TIMEOUT):
                while not self.is_complete and self._size < most and (self._size or not expected):
                    async with asyncio.timeout(_DISCARD_READ_TIMEOUT):
                        await self._next()
        await send_body(send, b"")

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise ClientDisconnected
        self.is_complete = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        self._size += len(piece)
        return piece
