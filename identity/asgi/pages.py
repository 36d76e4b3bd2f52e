"""The Pyramid application as WSGI in threads: the event loop reads the body first, and sends the answer."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from io import BytesIO
from typing import Any, TypeVar

from identity.asgi.bodies import Unread
from identity.asgi.heads import Head
from identity.asgi.messages import Answer, ClientLeft, Headers, Receive, Send, send_body, start_response
from identity.asgi.threads import QueueFull, Threads
from identity.fair_shares import FairShares, Full, asked_from
from identity.http.environ import FORWARDED, PEER, UNREAD_BODY
from identity.http.protocol import MAX_BODY
from identity.http.request_ids import HEADER, KEPT
from identity.http.shares import network_of

#: So many bytes of a document are kept in memory, the others in a file; and how many may be on their way in.
_IN_MEMORY, DOCUMENTS_ARRIVING = 1 << 19, 32
_RETRY_AFTER = 5
#: Seconds in which the client has to take a piece of a document.
PIECE_TIME = 60.0
_BUSY = "Too many requests wait for an answer just now. Try again in a few seconds."

Result = TypeVar("Result")
WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Pages:
    """Pages, the management API, and all else that is no endpoint of the protocol."""

    def __init__(self, application: WSGIApplication, threads: Threads, trusted_proxy: str) -> None:
        self._application = application
        self._threads = threads
        self._trusted_proxy = trusted_proxy
        self._documents = FairShares(DOCUMENTS_ARRIVING, by_organization=False)

    async def answer(self, head: Head, request_id: str, receive: Receive, send: Send) -> None:
        """Raises TooSlow and ClientLeft."""
        unread = Unread(receive, head.length)
        body = await unread.read(MAX_BODY)
        environ = wsgi_environ(head, request_id)
        try:
            if body is None:
                environ[UNREAD_BODY] = None
                environ["CONTENT_LENGTH"] = str(unread.size)
            elif body:
                environ["wsgi.input"] = BytesIO(body)
                environ["CONTENT_LENGTH"] = str(len(body))
            answer = await self._call(environ)
            most = environ.get(UNREAD_BODY)
            if most is not None:
                await self._finish(answer)
                environ = wsgi_environ(head, request_id)
                # The file has to stay open until the view has ended, though the client may leave and the server cancel.
                answer = await _to_its_end(self._call_with_document(head.client, environ, unread, most))
            is_refused = UNREAD_BODY in environ
            await self._send(answer, receive, send, close=is_refused)
            if is_refused:
                await unread.discard(send, expected=head.expects)
        except (QueueFull, Full):
            is_refused = not unread.is_complete
            await refuse_for_now(send, request_id, close=is_refused)
            if is_refused:
                await unread.discard(send, expected=head.expects)

    async def _call_with_document(self, client: str, environ: dict[str, Any], unread: Unread, most: int) -> Answer:
        """Call the view that takes a body of so many bytes. Raises TooSlow, ClientLeft, QueueFull and Full."""
        with (
            asked_from(network_of(client, self._trusted_proxy)),
            self._documents.place(),
            tempfile.SpooledTemporaryFile(_IN_MEMORY) as file,
        ):
            if await unread.copy(file, most):
                environ["wsgi.input"] = file
            else:
                environ[UNREAD_BODY] = None
            environ["CONTENT_LENGTH"] = str(unread.size)
            return await self._call(environ)

    def call(self, environ: dict[str, Any]) -> Answer:
        """A short answer, for a greenlet or thread. Raises QueueFull."""
        return self._threads.call(lambda: call_wsgi(self._application, environ))

    async def _call(self, environ: dict[str, Any]) -> Answer:
        # A body may be a document, which is not looked for its end in the way that a socket is.
        environ["webob.is_body_seekable"] = True
        return await self._threads.run(lambda: call_wsgi(self._application, environ))

    async def _send(self, answer: Answer, receive: Receive, send: Send, *, close: bool) -> None:
        if answer.pieces is None:
            await start_response(send, answer.status, answer.headers, close=close)
            await send_body(send, answer.body, more=close)
        else:
            # A server may cancel it while a thread makes a piece, which has to end before the pieces are closed.
            await _to_its_end(self._stream(answer, answer.pieces, receive, send, close=close))

    async def _stream(
        self, answer: Answer, pieces: Iterable[bytes], receive: Receive, send: Send, *, close: bool
    ) -> None:
        left = asyncio.ensure_future(_until_left(receive))
        # Each piece may come from another thread, with the context variables of the one before.
        context, iterator = copy_context(), iter(pieces)
        try:
            await start_response(send, answer.status, answer.headers, close=close)
            if answer.body:
                await send_body(send, answer.body, more=True)
            while True:
                piece = await self._threads.run(lambda: context.run(next, iterator, None), has_begun=True)
                if piece is None or left.done():
                    break
                async with asyncio.timeout(PIECE_TIME):
                    await send_body(send, piece, more=True)
            await send_body(send, b"", more=close)
        except TimeoutError:
            # What the document is read from is others' turn.
            raise ClientLeft from None
        finally:
            left.cancel()
            await self._finish(answer, context.run)

    async def _finish(self, answer: Answer, run: Callable[..., Any] | None = None) -> None:
        close = getattr(answer.pieces, "close", None)
        if close is not None:
            await self._threads.run(close if run is None else lambda: run(close), has_begun=True)


async def _to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """What the work returns or raises. To cancel this coroutine only drops that."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return await asyncio.shield(task)


async def _until_left(receive: Receive) -> None:
    """Return once the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def wsgi_environ(head: Head, request_id: str) -> dict[str, Any]:
    """The WSGI environment of a request, without its body (PEP 3333)."""
    host, _, port = head.headers.get("host", "").partition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": head.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": head.path,
        "QUERY_STRING": head.query,
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": f"HTTP/{head.version}",
        "REMOTE_ADDR": head.client,
        PEER: head.peer,
        KEPT: request_id,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    if head.is_forwarded:
        environ[FORWARDED] = True
    for name, value in head.headers.items():
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name not in ("content-length", "transfer-encoding"):
            environ["HTTP_" + name.upper().replace("-", "_")] = value
    return environ


def call_wsgi(application: WSGIApplication, environ: dict[str, Any]) -> Answer:
    """What the application answers."""
    begun: list[tuple[int, Headers]] = []
    written: list[bytes] = []

    def start(status: str, headers: Headers, exc_info: object = None) -> Callable[[bytes], None]:
        begun[:] = [(int(status[:3]), list(headers))]
        return written.append

    content = application(environ, start)
    [(status, headers)] = begun
    if isinstance(content, (list, tuple)):
        return Answer(status, headers, b"".join((*written, *content)))
    return Answer(status, headers, b"".join(written), content)


async def refuse_for_now(send: Send, request_id: str, *, close: bool) -> None:
    """Answer 503, which programs and people can read: no thread is free to draw a page.

    With ``close`` the answer is to be ended by ``Unread.discard``.
    """
    members = {"error": "temporarily_unavailable", "message": _BUSY, "request_id": request_id}
    body = json.dumps(members).encode()
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Retry-After", str(_RETRY_AFTER)),
        (HEADER, request_id),
    ]
    await start_response(send, 503, headers, close=close)
    await send_body(send, body, more=close)
