"""The ASGI application: dispatches each request to its endpoint, or to Pyramid."""

import asyncio
import logging
from contextlib import ExitStack, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any

from identity import instrumentation, password_hashing
from identity.asgi.endpoint_call import EndpointCall, EndpointRoute, EndpointRouter
from identity.asgi.messages import ClientDisconnected, Receive, Scope, Send, send_body, start_response
from identity.asgi.request_body import BodyTimeout, RequestBody
from identity.asgi.request_head import InvalidRequestHead, RequestHead, parse_request_head
from identity.asgi.thread_pool import (
    MAX_ENDPOINT_THREADS,
    MAX_QUEUED_ENDPOINT_REQUESTS,
    MAX_QUEUED_REQUESTS,
    MAX_REQUEST_THREADS,
    RequestThreadPool,
    ThreadPoolFull,
    released_slot,
)
from identity.asgi.wsgi_adapter import WsgiApplication, WsgiThreadAdapter, send_service_unavailable
from identity.concurrency import GreenletPool
from identity.http.access_log import log_request
from identity.http.endpoint_handler import MAX_BODY_BYTES, EndpointHandler, response_headers
from identity.http.health import ImmediateResponse
from identity.http.request_ids import REQUEST_ID_HEADER, choose_request_id, request_log_context
from identity.http.request_observers import ObservedRequest, normalized_method, observe_request
from identity.log_formatters import log_context
from identity.provider.cacheable_document import CachedDocumentSources
from identity.provider.protocol_request import NO_BROWSER_STATE, ProtocolResponse

if TYPE_CHECKING:
    from identity.application import IdentityApplication

log = logging.getLogger(__name__)

#: The number of concurrent requests that do not use the storage; they never wait.
_MAX_STORAGE_FREE_REQUESTS = 64
#: Seconds to finish requests at shutdown whose clients have left.
_DRAIN_TIMEOUT = 10.0


class AsgiApplication:
    """Wraps the WSGI application (``identity.application_factory.main``), whose ``registry`` it shares."""

    def __init__(self, wsgi: WsgiApplication) -> None:
        self.registry: Any = wsgi.registry  # type: ignore[attr-defined]
        self._wsgi = wsgi
        self._endpoint_router = EndpointRouter(self.registry)
        self._loop: _LoopState | None = None
        identity: IdentityApplication = self.registry.application
        self._document_sources = CachedDocumentSources(identity.protocol_registry, identity.process_state.key_ring)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the server's start and stop (ASGI lifespan)."""
        kind = scope["type"]
        if kind == "http":
            await self._handle_http(scope, receive, send)
        elif kind == "lifespan":
            await self._handle_lifespan(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close"})

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        identity: IdentityApplication = self.registry.application
        await receive()
        with ExitStack() as stack:
            try:
                stack.enter_context(identity.lifespan())
            except Exception as problem:
                await send({"type": "lifespan.startup.failed", "message": f"identity cannot start. {problem}"})
                return
            stack.callback(identity.close)
            loop = self._loop_state()
            password_hashing.released_slot = released_slot
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await loop.drain()
            password_hashing.released_slot = nullcontext
            self._loop = None
        log.info("stopped")
        await send({"type": "lifespan.shutdown.complete"})

    def _loop_state(self) -> "_LoopState":
        loop_state = self._loop
        if loop_state is None:
            loop_state = self._loop = _LoopState(self._wsgi, self.registry.application)
        return loop_state

    async def _handle_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        identity: IdentityApplication = self.registry.application
        trusted_proxy = identity.settings.trusted_proxy
        try:
            head = parse_request_head(scope, trusted_proxy)
        except InvalidRequestHead as refusal:
            await _send_error(scope, receive, send, refusal.status, str(refusal))
            return
        request_id = choose_request_id(head.headers.get("x-request-id", ""), head.peer_address, trusted_proxy)
        try:
            found = self._endpoint_router.match(head)
            immediate_response = None if found is None else self._cached_document_response(found[0], head)
            if immediate_response is not None:
                await self._send_immediate_response(immediate_response, head, request_id, send)
            elif found is not None:
                await self._handle_endpoint(*found, head, request_id, receive, send)
            elif (immediate := self.registry.immediate_responses.get(head.path)) and immediate.accepts_method(
                head.method
            ):
                await self._send_immediate_response(immediate, head, request_id, send)
            else:
                await self._loop_state().wsgi_adapter.handle(head, request_id, receive, send)
        except BodyTimeout:
            await _send_error(scope, receive, send, 408, "The body took too long.")
        except ClientDisconnected:
            return

    def _cached_document_response(self, endpoint_route: EndpointRoute, head: RequestHead) -> ImmediateResponse | None:
        """The response with a cached document; None if the storage must be read."""
        find = endpoint_route.handler.endpoint.cached_document
        if find is None or head.method != "GET" or head.content_length != 0 or "origin" in head.headers:
            return None
        document = find(self._document_sources, self.registry.application.clock())
        if document is None:
            return None

        def answer() -> ProtocolResponse:
            self.registry.application.background_worker.wake()
            return document.response(head.headers.get("if-none-match"))

        return ImmediateResponse(endpoint_route.route_name, endpoint_route.pattern, answer)

    async def _send_immediate_response(
        self, immediate: ImmediateResponse, head: RequestHead, request_id: str, send: Send
    ) -> None:
        answer = self._call_immediate_response(immediate, head, request_id)
        headers = response_headers(answer, self.registry.application, lambda: NO_BROWSER_STATE)
        headers.append((REQUEST_ID_HEADER, request_id))
        await start_response(send, answer.status, headers)
        await send_body(send, b"" if head.method == "HEAD" else answer.body)

    def _call_immediate_response(
        self, immediate: ImmediateResponse, head: RequestHead, request_id: str
    ) -> ProtocolResponse:
        started, observers = perf_counter(), self.registry.request_observers
        method = normalized_method(head.method)
        request = ObservedRequest(method, head.peer_address, request_id, head.headers.get)
        request.route_name, request.route_pattern = immediate.name, immediate.pattern
        about_before = log_context.set(lambda: request_log_context(request_id, request.trace_id))
        try:
            with observe_request(observers, request) if observers else nullcontext():
                answer = immediate.respond()
                request.status = answer.status
            log_request(method, immediate.pattern, answer.status, perf_counter() - started)
        finally:
            log_context.reset(about_before)
        return answer

    async def _handle_endpoint(
        self,
        endpoint_route: EndpointRoute,
        resumed: str | None,
        head: RequestHead,
        request_id: str,
        receive: Receive,
        send: Send,
    ) -> None:
        loop = self._loop_state()
        registry = self.registry
        call = EndpointCall(
            registry.application,
            registry.request_observers,
            endpoint_route,
            resumed,
            head,
            request_id,
            loop.wsgi_adapter.call_from_endpoint,
        )
        unread = None
        if head.content_length != 0:
            unread = RequestBody(receive, head.content_length)
            call.body = await unread.read(MAX_BODY_BYTES)
        try:
            answer = await loop.executor_for(endpoint_route.handler, head).run(call)
        except ThreadPoolFull:
            await send_service_unavailable(send, request_id, close=call.body is None)
        else:
            is_refused = call.body is None
            await start_response(send, answer.status, answer.headers, close=is_refused)
            await send_body(send, b"" if head.method == "HEAD" else answer.body, more=is_refused)
        if call.body is None and unread is not None:
            await unread.discard(send, expected=head.expects_continue)


class _LoopState:
    def __init__(self, wsgi: WsgiApplication, identity: "IdentityApplication") -> None:
        most = identity.backend.max_greenlets if identity.settings.endpoints_in_event_loop else 0
        # Separate, since a slow storage takes all slots of the requests that wait for it.
        self._storage_free_pool = GreenletPool(_MAX_STORAGE_FREE_REQUESTS)
        self._greenlets = GreenletPool(most) if most > 0 else None
        # Separate, so that pages do not delay programs.
        self.endpoint_thread_pool = RequestThreadPool(MAX_ENDPOINT_THREADS, MAX_QUEUED_ENDPOINT_REQUESTS)
        self.thread_pool = RequestThreadPool(MAX_REQUEST_THREADS, MAX_QUEUED_REQUESTS)
        self.wsgi_adapter = WsgiThreadAdapter(wsgi, self.thread_pool, identity.settings.trusted_proxy)

    def executor_for(self, handler: EndpointHandler, head: RequestHead) -> GreenletPool | RequestThreadPool:
        """The executor in which the endpoint does not block the loop."""
        if handler.endpoint.is_blocking:
            return self.endpoint_thread_pool
        if not handler.needs_storage_for_cors(head.headers.get("origin")):
            return self._storage_free_pool
        return self._greenlets or self.endpoint_thread_pool

    async def drain(self) -> None:
        give_up_at = asyncio.get_running_loop().time() + _DRAIN_TIMEOUT
        while self._is_busy:
            if asyncio.get_running_loop().time() > give_up_at:
                log.warning("stopped with requests that had not ended")
                break
            await asyncio.sleep(0.05)
        self.thread_pool.close()
        self.endpoint_thread_pool.close()

    @property
    def _is_busy(self) -> bool:
        in_loop = self._storage_free_pool.active_count or (self._greenlets is not None and self._greenlets.active_count)
        return bool(in_loop or self.thread_pool.active_count or self.endpoint_thread_pool.active_count)


async def _send_error(scope: Scope, receive: Receive, send: Send, status: int, text: str) -> None:
    instrumentation.record_server_refusal(status)
    body = f"{text}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    await start_response(send, status, headers, close=True)
    await send_body(send, body, more=True)
    expected = any(name.lower() == b"expect" for name, _ in scope["headers"])
    await RequestBody(receive, None).discard(send, expected=expected)
