"""The Pyramid application as WSGI in threads: the event loop reads the body first, and sends the response."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from io import BytesIO
from typing import Any, TypeVar

from identity.asgi.messages import AsgiResponse, ClientDisconnected, Headers, Receive, Send, send_body, start_response
from identity.asgi.request_body import RequestBody
from identity.asgi.request_head import RequestHead
from identity.asgi.thread_pool import RequestThreadPool, ThreadPoolFull
from identity.fair_semaphore import FairSemaphore, NoFreeSlot, client_network_scope
from identity.http.client_network import request_network
from identity.http.endpoint_handler import MAX_BODY_BYTES
from identity.http.environ_keys import FORWARDED_KEY, PEER_KEY, UNREAD_BODY_KEY
from identity.http.request_ids import REQUEST_ID_HEADER, REQUEST_ID_KEY

#: The part of a document that is kept in memory, the rest in a file; and the number of concurrent uploads.
_MAX_MEMORY_BYTES, MAX_CONCURRENT_UPLOADS = 1 << 19, 32
_RETRY_AFTER = 5
#: Seconds in which the client must take a chunk of a document.
CHUNK_TIMEOUT = 60.0
_BUSY_MESSAGE = "Too many requests wait for an answer just now. Try again in a few seconds."

ResultT = TypeVar("ResultT")
WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class WsgiThreadAdapter:
    """Pages, the management API, and everything else that is not a protocol endpoint."""

    def __init__(self, application: WsgiApplication, threads: RequestThreadPool, trusted_proxy: str) -> None:
        self._application = application
        self._threads = threads
        self._trusted_proxy = trusted_proxy
        self._document_semaphore = FairSemaphore(MAX_CONCURRENT_UPLOADS, by_organization=False)

    async def handle(self, head: RequestHead, request_id: str, receive: Receive, send: Send) -> None:
        """Raises BodyTimeout and ClientDisconnected."""
        unread = RequestBody(receive, head.content_length)
        body = await unread.read(MAX_BODY_BYTES)
        environ = build_wsgi_environ(head, request_id)
        try:
            if body is None:
                environ[UNREAD_BODY_KEY] = None
                environ["CONTENT_LENGTH"] = str(unread.size)
            elif body:
                environ["wsgi.input"] = BytesIO(body)
                environ["CONTENT_LENGTH"] = str(len(body))
            answer = await self._call(environ)
            most = environ.get(UNREAD_BODY_KEY)
            if most is not None:
                await self._close_response(answer)
                environ = build_wsgi_environ(head, request_id)
                # The file must stay open until the view ends, even if the client leaves and the server cancels.
                answer = await _shield(self._call_with_document(head.client_address, environ, unread, most))
            is_refused = UNREAD_BODY_KEY in environ
            await self._send(answer, receive, send, close=is_refused)
            if is_refused:
                await unread.discard(send, expected=head.expects_continue)
        except (ThreadPoolFull, NoFreeSlot):
            is_refused = not unread.is_complete
            await send_service_unavailable(send, request_id, close=is_refused)
            if is_refused:
                await unread.discard(send, expected=head.expects_continue)

    async def _call_with_document(
        self, client: str, environ: dict[str, Any], unread: RequestBody, most: int
    ) -> AsgiResponse:
        """Call the view that takes a body of this size. Raises BodyTimeout, ClientDisconnected, ThreadPoolFull and
        NoFreeSlot.
        """
        with (
            client_network_scope(request_network(client, self._trusted_proxy)),
            self._document_semaphore.acquired(),
            tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES) as file,
        ):
            if await unread.copy_to(file, most):
                environ["wsgi.input"] = file
            else:
                environ[UNREAD_BODY_KEY] = None
            environ["CONTENT_LENGTH"] = str(unread.size)
            return await self._call(environ)

    def call_from_endpoint(self, environ: dict[str, Any]) -> AsgiResponse:
        """A short response, for a greenlet or thread. Raises ThreadPoolFull."""
        return self._threads.run_sync(lambda: call_wsgi(self._application, environ))

    async def _call(self, environ: dict[str, Any]) -> AsgiResponse:
        # Otherwise WebOb would read a document to its end, as it does with a socket.
        environ["webob.is_body_seekable"] = True
        return await self._threads.run(lambda: call_wsgi(self._application, environ))

    async def _send(self, answer: AsgiResponse, receive: Receive, send: Send, *, close: bool) -> None:
        if answer.chunks is None:
            await start_response(send, answer.status, answer.headers, close=close)
            await send_body(send, answer.body, more=close)
        else:
            # A server may cancel while a thread builds a chunk, which must end before the chunks are closed.
            await _shield(self._send_stream(answer, answer.chunks, receive, send, close=close))

    async def _send_stream(
        self, answer: AsgiResponse, pieces: Iterable[bytes], receive: Receive, send: Send, *, close: bool
    ) -> None:
        task = asyncio.ensure_future(_wait_for_disconnect(receive))
        # The next chunk may run in another thread, with the context variables of the previous one.
        context, iterator = copy_context(), iter(pieces)
        try:
            await start_response(send, answer.status, answer.headers, close=close)
            if answer.body:
                await send_body(send, answer.body, more=True)
            while True:
                piece = await self._threads.run(lambda: context.run(next, iterator, None), has_begun=True)
                if piece is None or task.done():
                    break
                async with asyncio.timeout(CHUNK_TIMEOUT):
                    await send_body(send, piece, more=True)
            await send_body(send, b"", more=close)
        except TimeoutError:
            # Free the snapshot that the document is read from.
            raise ClientDisconnected from None
        finally:
            task.cancel()
            await self._close_response(answer, context.run)

    async def _close_response(self, answer: AsgiResponse, run: Callable[..., Any] | None = None) -> None:
        close = getattr(answer.chunks, "close", None)
        if close is not None:
            await self._threads.run(close if run is None else lambda: run(close), has_begun=True)


async def _shield(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """The result of the work. Cancelling this coroutine only drops it."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return await asyncio.shield(task)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def build_wsgi_environ(head: RequestHead, request_id: str) -> dict[str, Any]:
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
        "REMOTE_ADDR": head.client_address,
        PEER_KEY: head.peer_address,
        REQUEST_ID_KEY: request_id,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    if head.is_forwarded:
        environ[FORWARDED_KEY] = True
    for name, value in head.headers.items():
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name not in ("content-length", "transfer-encoding"):
            environ["HTTP_" + name.upper().replace("-", "_")] = value
    return environ


def call_wsgi(application: WsgiApplication, environ: dict[str, Any]) -> AsgiResponse:
    begun: list[tuple[int, Headers]] = []
    written: list[bytes] = []

    def start(status: str, headers: Headers, exc_info: object = None) -> Callable[[bytes], None]:
        begun[:] = [(int(status[:3]), list(headers))]
        return written.append

    content = application(environ, start)
    [(status, headers)] = begun
    if isinstance(content, (list, tuple)):
        return AsgiResponse(status, headers, b"".join((*written, *content)))
    return AsgiResponse(status, headers, b"".join(written), content)


async def send_service_unavailable(send: Send, request_id: str, *, close: bool) -> None:
    """Answer 503 for programs and browsers: no thread is free to render a page.

    With ``close`` the caller ends the response by ``RequestBody.discard``.
    """
    members = {"error": "temporarily_unavailable", "message": _BUSY_MESSAGE, "request_id": request_id}
    body = json.dumps(members).encode()
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Retry-After", str(_RETRY_AFTER)),
        (REQUEST_ID_HEADER, request_id),
    ]
    await start_response(send, 503, headers, close=close)
    await send_body(send, body, more=close)
