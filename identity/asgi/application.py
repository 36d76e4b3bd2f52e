"""The ASGI application: hands each request to its endpoint, or to Pyramid."""

import asyncio
import logging
from contextlib import ExitStack, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any

from identity import hashing, watching
from identity.asgi.bodies import TooSlow, Unread
from identity.asgi.endpoints import EndpointCall, Place, Places
from identity.asgi.heads import BadHead, Head, read_head
from identity.asgi.messages import ClientLeft, Receive, Scope, Send, send_body, start_response
from identity.asgi.pages import Pages, WSGIApplication, refuse_for_now
from identity.asgi.threads import (
    ENDPOINT_THREADS,
    LONGEST_ENDPOINT_QUEUE,
    LONGEST_QUEUE,
    THREADS,
    QueueFull,
    Threads,
    stepping_aside,
)
from identity.concurrency import Greenlets
from identity.http.health import ImmediateAnswer
from identity.http.observers import ObservedRequest, known_method, observed
from identity.http.protocol import MAX_BODY, EndpointHandler, response_headers
from identity.http.request_ids import HEADER, log_members, new_request_id
from identity.http.request_log import log_request
from identity.log_format import about
from identity.provider.caching import Keeping
from identity.provider.request import NO_BROWSER, ProtocolResponse

if TYPE_CHECKING:
    from identity.process import Identity

log = logging.getLogger(__name__)

#: How many requests that ask no storage are answered at a time; they wait for nothing.
_WITHOUT_STORAGE = 64
#: Seconds for which requests whose clients left are finished at a stop.
_GRACE = 10.0


class Application:
    """Made of the WSGI application (``identity.app.main``), whose ``registry`` it has, too."""

    def __init__(self, wsgi: WSGIApplication) -> None:
        self.registry: Any = wsgi.registry  # type: ignore[attr-defined]
        self._wsgi = wsgi
        self._places = Places(self.registry)
        self._loop: _Loop | None = None
        identity: Identity = self.registry.identity
        self._keeping = Keeping(identity.protocol, identity.process.ring)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end with the server (ASGI's lifespan)."""
        kind = scope["type"]
        if kind == "http":
            await self._answer(scope, receive, send)
        elif kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close"})

    async def _live(self, receive: Receive, send: Send) -> None:
        identity: Identity = self.registry.identity
        await receive()
        with ExitStack() as stack:
            try:
                stack.enter_context(identity.running())
            except Exception as problem:
                await send({"type": "lifespan.startup.failed", "message": f"identity cannot start. {problem}"})
                return
            stack.callback(identity.close)
            loop = self._in_loop()
            hashing.stepping_aside = stepping_aside
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await loop.finish()
            hashing.stepping_aside = nullcontext
            self._loop = None
        log.info("stopped")
        await send({"type": "lifespan.shutdown.complete"})

    def _in_loop(self) -> "_Loop":
        found = self._loop
        if found is None:
            found = self._loop = _Loop(self._wsgi, self.registry.identity)
        return found

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        identity: Identity = self.registry.identity
        trusted_proxy = identity.settings.trusted_proxy
        try:
            head = read_head(scope, trusted_proxy)
        except BadHead as refusal:
            await _refuse(scope, receive, send, refusal.status, str(refusal))
            return
        request_id = new_request_id(head.headers.get("x-request-id", ""), head.peer, trusted_proxy)
        try:
            found = self._places.find(head)
            kept = None if found is None else self._kept(found[0], head)
            if kept is not None:
                await self._send_at_once(kept, head, request_id, send)
            elif found is not None:
                await self._answer_endpoint(*found, head, request_id, receive, send)
            elif (immediate := self.registry.immediate_answers.get(head.path)) and immediate.fits(head.method):
                await self._send_at_once(immediate, head, request_id, send)
            else:
                await self._in_loop().pages.answer(head, request_id, receive, send)
        except TooSlow:
            await _refuse(scope, receive, send, 408, "The body took too long.")
        except ClientLeft:
            return

    def _kept(self, place: Place, head: Head) -> ImmediateAnswer | None:
        """What shows a document that the process has already; None if anything has to be asked."""
        find = place.handler.endpoint.kept
        if find is None or head.method != "GET" or head.length != 0 or "origin" in head.headers:
            return None
        document = find(self._keeping, self.registry.identity.clock())
        if document is None:
            return None

        def answer() -> ProtocolResponse:
            self.registry.identity.worker.wake()
            return document.answer(head.headers.get("if-none-match"))

        return ImmediateAnswer(place.route_name, place.pattern, answer)

    async def _send_at_once(self, immediate: ImmediateAnswer, head: Head, request_id: str, send: Send) -> None:
        answer = self._at_once(immediate, head, request_id)
        headers = response_headers(answer, self.registry.identity, lambda: NO_BROWSER)
        headers.append((HEADER, request_id))
        await start_response(send, answer.status, headers)
        await send_body(send, b"" if head.method == "HEAD" else answer.body)

    def _at_once(self, immediate: ImmediateAnswer, head: Head, request_id: str) -> ProtocolResponse:
        started, observers = perf_counter(), self.registry.request_observers
        method = known_method(head.method)
        seen = ObservedRequest(method, head.peer, request_id, head.headers.get)
        seen.route_name, seen.route_pattern = immediate.name, immediate.pattern
        about_before = about.set(lambda: log_members(request_id, seen.trace_id))
        try:
            with observed(observers, seen) if observers else nullcontext():
                answer = immediate.answer()
                seen.status = answer.status
            log_request(method, immediate.pattern, answer.status, perf_counter() - started)
        finally:
            about.reset(about_before)
        return answer

    async def _answer_endpoint(
        self, place: Place, resumed: str | None, head: Head, request_id: str, receive: Receive, send: Send
    ) -> None:
        loop = self._in_loop()
        registry = self.registry
        call = EndpointCall(
            registry.identity, registry.request_observers, place, resumed, head, request_id, loop.pages.call
        )
        unread = None
        if head.length != 0:
            unread = Unread(receive, head.length)
            call.body = await unread.read(MAX_BODY)
        try:
            answer = await loop.place_of(place.handler, head).run(call)
        except QueueFull:
            await refuse_for_now(send, request_id, close=call.body is None)
        else:
            is_refused = call.body is None
            await start_response(send, answer.status, answer.headers, close=is_refused)
            await send_body(send, b"" if head.method == "HEAD" else answer.body, more=is_refused)
        if call.body is None and unread is not None:
            await unread.discard(send, expected=head.expects)


class _Loop:
    """What belongs to one event loop."""

    def __init__(self, wsgi: WSGIApplication, identity: "Identity") -> None:
        most = identity.backend.max_greenlets if identity.settings.answer_in_loop else 0
        # A storage that is away or slow takes all places of those that wait for it.
        self._without_storage = Greenlets(_WITHOUT_STORAGE)
        self._greenlets = Greenlets(most) if most > 0 else None
        # Pages do not keep programs waiting.
        self.endpoint_threads = Threads(ENDPOINT_THREADS, LONGEST_ENDPOINT_QUEUE)
        self.threads = Threads(THREADS, LONGEST_QUEUE)
        self.pages = Pages(wsgi, self.threads, identity.settings.trusted_proxy)

    def place_of(self, handler: EndpointHandler, head: Head) -> Greenlets | Threads:
        """Where the endpoint runs, so that it does not block the loop."""
        if handler.endpoint.blocks:
            return self.endpoint_threads
        if not handler.asks_storage(head.headers.get("origin")):
            return self._without_storage
        return self._greenlets or self.endpoint_threads

    async def finish(self) -> None:
        """Wait for what was begun."""
        give_up_at = asyncio.get_running_loop().time() + _GRACE
        while self._is_busy:
            if asyncio.get_running_loop().time() > give_up_at:
                log.warning("stopped with requests that had not ended")
                break
            await asyncio.sleep(0.05)
        self.threads.close()
        self.endpoint_threads.close()

    @property
    def _is_busy(self) -> bool:
        in_loop = self._without_storage.busy or (self._greenlets is not None and self._greenlets.busy)
        return bool(in_loop or self.threads.working or self.endpoint_threads.working)


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, text: str) -> None:
    watching.refused(status)
    body = f"{text}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    await start_response(send, status, headers, close=True)
    await send_body(send, body, more=True)
    expected = any(name.lower() == b"expect" for name, _ in scope["headers"])
    await Unread(receive, None).discard(send, expected=expected)
