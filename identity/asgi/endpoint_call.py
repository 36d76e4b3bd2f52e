"""Requests to protocol endpoints without Pyramid: each has its own transaction, and is retried after a conflict."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyramid.interfaces import IRoutesMapper
from pyramid.registry import Registry
from transaction.interfaces import TransientError

from identity.asgi.messages import AsgiResponse
from identity.asgi.request_head import RequestHead
from identity.asgi.wsgi_adapter import build_wsgi_environ
from identity.cached_property import cached_property
from identity.domain.audit import Actor, ActorKind
from identity.fair_semaphore import set_client_network
from identity.http.access_log import log as request_log
from identity.http.access_log import log_request
from identity.http.activity_recording import record_endpoint_activity
from identity.http.client_network import request_network
from identity.http.cookies import read_browser_state
from identity.http.endpoint_handler import EndpointHandler, EndpointResult, body_too_large_error, media_type
from identity.http.environ_keys import ENDPOINT_RESULT_KEY
from identity.http.error_views import DAMAGED_DATA_ERRORS, log_unavailable
from identity.http.language_negotiation import choose_language, ui_locales_from_query
from identity.http.request_ids import REQUEST_ID_HEADER, request_log_context
from identity.http.request_observers import ObservedRequest, normalized_method, observe_request
from identity.http.request_services import RequestServices, add_user_agent
from identity.http.route_predicates import accepted_hosts_by_address
from identity.http.transactions import MAX_ATTEMPTS
from identity.log_formatters import log_context
from identity.provider.context import Context
from identity.provider.endpoint import EndpointHost
from identity.provider.errors import OAuthError, TemporarilyUnavailable
from identity.provider.protocol_request import NO_BROWSER_STATE, BrowserState, ProtocolRequest, ProtocolResponse
from identity.storage.errors import StorageUnavailable
from identity.transaction_manager import ExplicitTransactionManager

if TYPE_CHECKING:
    from identity.application import IdentityApplication

log = logging.getLogger(__name__)

_UNAVAILABLE = (StorageUnavailable, *DAMAGED_DATA_ERRORS)


@dataclass(frozen=True, slots=True)
class EndpointRoute:
    """The path of an endpoint. ``match`` returns the id in a path, or None."""

    handler: EndpointHandler
    hosts: frozenset[str]
    route_name: str
    pattern: str
    match: Callable[[str], Mapping[str, str] | None]


class EndpointRouter:
    """All endpoints by path, as in Pyramid's routes."""

    def __init__(self, registry: Registry) -> None:
        hosts = accepted_hosts_by_address(registry.application.settings)
        mapper = registry.queryUtility(IRoutesMapper)
        self._path_index: dict[str, EndpointRoute] = {}
        self._with_parameters: list[tuple[str, EndpointRoute]] = []
        for name, handler in registry.endpoint_handlers.items():
            route, endpoint = mapper.get_route(name), handler.endpoint
            endpoint_route = EndpointRoute(handler, hosts[endpoint.host], name, route.pattern, route.match)
            if endpoint.path_prefix:
                self._with_parameters.append((endpoint.path_prefix, endpoint_route))
            else:
                self._path_index[endpoint.path] = endpoint_route

    def match(self, head: RequestHead) -> tuple[EndpointRoute, str | None] | None:
        """The endpoint's route, and the id of the authorization request in its path, if any."""
        host = head.headers.get("host", "")
        exact = self._path_index.get(head.path)
        if exact is not None and (host in exact.hosts or host.lower() in exact.hosts):
            return exact, None
        for start, endpoint_route in self._with_parameters:
            if head.path.startswith(start) and (host in endpoint_route.hosts or host.lower() in endpoint_route.hosts):
                try:
                    found = endpoint_route.match(head.path.encode("latin-1").decode("utf-8"))
                except UnicodeDecodeError:
                    return None
                if found is not None:
                    return endpoint_route, found.get("request")
        return None


class _TransactionConflict(Exception):
    """The transaction lost against another; the request is retried."""


class EndpointCall:
    """A request to an endpoint, called in a greenlet or a thread with its own context variables."""

    def __init__(
        self,
        identity: "IdentityApplication",
        observers: tuple[Any, ...],
        endpoint_route: EndpointRoute,
        resumed: str | None,
        head: RequestHead,
        request_id: str,
        draw: Callable[[dict[str, Any]], AsgiResponse],
    ) -> None:
        self._identity = identity
        self._observers = observers
        self._route = endpoint_route
        self._resumed_request_id = resumed
        self._request_head = head
        self._request_id = request_id
        self._render_page = draw
        self._claimed_keys: set[Any] = set()
        self._trace_id: str | None = None
        #: None for a body over the limit, which was not read.
        self.body: bytes | None = b""

    def __call__(self) -> AsgiResponse:
        identity, started = self._identity, perf_counter()
        log_context.set(lambda: request_log_context(self._request_id, self._trace_id))
        set_client_network(request_network(self._request_head.client_address, identity.settings.trusted_proxy))
        writes = self._route.handler.endpoint.writes
        left = MAX_ATTEMPTS if writes and identity.backend.has_write_conflicts else 1
        attempt = self._attempt_observed if self._observers else self._attempt
        while True:
            left -= 1
            try:
                answer = attempt(may_repeat=left > 0)
                break
            except _TransactionConflict:
                continue
        answer.headers.append((REQUEST_ID_HEADER, self._request_id))
        if request_log.isEnabledFor(logging.INFO):
            seconds = perf_counter() - started
            log_request(normalized_method(self._request_head.method), self._route.pattern, answer.status, seconds)
        identity.background_worker.wake()
        return answer

    def _attempt_observed(self, *, may_repeat: bool) -> AsgiResponse:
        request = ObservedRequest(
            method=normalized_method(self._request_head.method),
            peer=self._request_head.peer_address,
            request_id=self._request_id,
            header=self._request_head.headers.get,
            route_name=self._route.route_name,
            route_pattern=self._route.pattern,
        )
        with observe_request(self._observers, request):
            self._trace_id = request.trace_id
            try:
                answer = self._attempt(may_repeat=may_repeat, observed=request)
            except _TransactionConflict:
                request.is_final = False
                raise
            request.status = answer.status
            return answer

    def _attempt(self, *, may_repeat: bool, observed: ObservedRequest | None = None) -> AsgiResponse:
        transactions = ExplicitTransactionManager() if self._route.handler.endpoint.writes else None
        opened = self._request_services(transactions)
        answer: AsgiResponse | None = None
        result: ProtocolResponse | Exception
        try:
            try:
                if transactions is not None:
                    transactions.begin()
                try:
                    result = self._build_response(opened)
                except Exception as error:
                    if may_repeat and isinstance(error, TransientError):
                        raise
                    result = error
                answer = self._handle_result(result, opened)
                # Commit for a response, or for an error that commits.
                if transactions is not None and getattr(
                    result, "commits_transaction", not isinstance(result, Exception)
                ):
                    transactions.commit()
                    transactions = None
            except Exception as error:
                if may_repeat and isinstance(error, TransientError):
                    raise _TransactionConflict from error
                answer, result = None, error
            finally:
                if transactions is not None:
                    try:
                        _abort_transaction(transactions)
                    except Exception as error:
                        # The commit failed, and the response relies on it.
                        answer, result = None, error
            refused = opened.refusals
        finally:
            opened.close()
        if observed is not None:
            observed.set_context(opened.context)
            observed.error = type(result) if isinstance(result, Exception) else None
        if answer is None:
            answer = self._response_after_commit(result, opened.context)
        record_endpoint_activity(
            self._identity,
            self._route.handler.endpoint,
            opened.context,
            answer.status,
            self._request_head.client_address,
        )
        if refused:
            agent = self._browser_state.user_agent
            self._identity.record_refusals([add_user_agent(event, agent) for event in refused])
        return answer

    def _build_response(self, opened: RequestServices) -> ProtocolResponse:
        handler, headers = self._route.handler, self._request_head.headers
        if handler.is_preflight(self._request_head.method, headers.get("access-control-request-method")):
            return handler.preflight_response()
        handler.check_method(self._request_head.method)
        if self.body is None:
            raise body_too_large_error()
        request = ProtocolRequest(
            method=self._request_head.method,
            query=self._request_head.query.encode("latin-1"),
            body=self.body,
            content_type=media_type(headers.get("content-type", "")),
            authorization=headers.get("authorization"),
            if_none_match=headers.get("if-none-match"),
            browser_state=self._browser_state if handler.reads_browser_state else NO_BROWSER_STATE,
            resumed_request_id=self._resumed_request_id,
            path=self._request_head.path,
            headers=headers,
            is_from_proxy=self._identity.settings.is_trusted_proxy(self._request_head.peer_address),
        )
        return handler.handle(request, opened)

    def _handle_result(self, result: ProtocolResponse | Exception, opened: RequestServices) -> AsgiResponse | None:
        """None if Pyramid must render it."""
        response = self._error_response(result, opened) if isinstance(result, Exception) else result
        if response is None or response.form_post is not None:
            return None
        headers = self._route.handler.response_headers(
            response, self._request_head.headers.get("origin"), opened, lambda: self._browser_state
        )
        return AsgiResponse(response.status, headers, response.body)

    def _error_response(self, error: Exception, opened: RequestServices) -> ProtocolResponse | None:
        """The response to a program; None for other errors, and for browsers."""
        is_for_people = self._route.handler.endpoint.host is EndpointHost.LOGIN
        if is_for_people or (opened.context is not None and opened.context.redirect_targets):
            return None
        if isinstance(error, OAuthError):
            return ProtocolResponse.from_error(error)
        if isinstance(error, _UNAVAILABLE):
            log_unavailable(error, self._request_id)
            return ProtocolResponse.from_error(TemporarilyUnavailable("try again in a few seconds"))
        return None

    def _response_after_commit(self, result: ProtocolResponse | Exception, context: Context | None) -> AsgiResponse:
        """The response after the end of the transaction: a failed commit, or a page that Pyramid renders."""
        if isinstance(result, Exception):
            reading = self._request_services(None)
            reading.context = context
            try:
                answer = self._handle_result(result, reading)
            finally:
                reading.close()
            if answer is not None:
                return answer
        environ = build_wsgi_environ(self._request_head, self._request_id)
        environ[ENDPOINT_RESULT_KEY] = EndpointResult(result, context)
        drawn = self._render_page(environ)
        return AsgiResponse(
            drawn.status, [header for header in drawn.headers if header[0] != REQUEST_ID_HEADER], drawn.body
        )

    def _request_services(self, transactions: ExplicitTransactionManager | None) -> RequestServices:
        return RequestServices(self._identity, self._actor, self._language, transactions, self._claimed_keys)

    def _actor(self) -> Actor:
        return Actor(
            kind=ActorKind.ANONYMOUS, client_address=self._request_head.client_address, request_id=self._request_id
        )

    def _language(self) -> str:
        return choose_language(
            ui_locales_from_query(self._request_head.query),
            accept_language=self._request_head.headers.get("accept-language", ""),
        )

    @cached_property
    def _browser_state(self) -> BrowserState:
        headers = self._request_head.headers
        agent = headers.get("user-agent", "").encode("latin-1")
        return read_browser_state(self._identity.settings, agent, headers.get("cookie", ""))


def _abort_transaction(transactions: ExplicitTransactionManager) -> None:
    """Abort, unless a failed commit or begin already has."""
    if transactions.is_active:
        transactions.abort()
