"""Protocol endpoints as Pyramid routes: ProtocolRequest ← request, ProtocolResponse → response."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.endpoint_handler import (
    MAX_BODY_BYTES,
    EndpointHandler,
    EndpointResult,
    body_too_large_error,
    media_type,
    response_headers,
)
from identity.http.environ_keys import ENDPOINT_RESULT_KEY, PEER_KEY, passed_headers
from identity.http.security_policy import ImpersonationDenied
from identity.provider.context import Context
from identity.provider.endpoint import EndpointHost
from identity.provider.protocol_request import NO_BROWSER_STATE, ProtocolRequest, ProtocolResponse

if TYPE_CHECKING:
    from identity.application import IdentityApplication

PROTOCOL_ROUTE_PREFIX = "protocol."

_BODY_HEADERS = frozenset({"Content-Length", "Content-Type"})


def build_protocol_request(request: Request, *, with_browser: bool = False) -> ProtocolRequest:
    """The request for the protocol; ``with_browser`` also reads the cookies. Raises RequestTooLarge without reading a
    body over MAX_BODY_BYTES."""
    environ = request.environ
    length = request.content_length or 0
    if length > MAX_BODY_BYTES:
        raise body_too_large_error()
    return ProtocolRequest(
        method=environ["REQUEST_METHOD"],
        query=environ.get("QUERY_STRING", "").encode("latin-1"),
        body=_body(environ, length),
        content_type=media_type(environ.get("CONTENT_TYPE", "")),
        authorization=environ.get("HTTP_AUTHORIZATION"),
        if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
        browser_state=request.browser_state if with_browser else NO_BROWSER_STATE,
        resumed_request_id=request.matchdict.get("request") if with_browser else None,
        path=environ.get("PATH_INFO", ""),
        headers=passed_headers(environ),
        is_from_proxy=request.registry.application.settings.is_trusted_proxy(environ.get(PEER_KEY, "")),
    )


def _body(environ: Mapping[str, Any], length: int) -> bytes:
    if not length:
        return b""
    stream = environ["wsgi.input"]
    # An earlier attempt at this request has read it.
    if environ.get("retry.attempt"):
        stream.seek(0)
    body: bytes = stream.read(length)
    return body


def build_response(request: Request, answer: ProtocolResponse) -> Response:
    """The Pyramid response, with the headers of all protocol responses."""
    handler = _matched_handler(request)
    if handler is None:
        headers = response_headers(answer, request.registry.application, lambda: request.browser_state)
    else:
        origin = request.environ.get("HTTP_ORIGIN")
        headers = handler.response_headers(answer, origin, request.request_services, lambda: request.browser_state)
    if answer.form_post is not None:
        drawn: Response = request.registry.render_form_post(request, answer.form_post)
        drawn.headerlist = [*drawn.headerlist, *(header for header in headers if header[0] not in _BODY_HEADERS)]
        return drawn
    return _ProtocolResponseAdapter(app_iter=[answer.body], status=answer.status, headerlist=headers)


class _ProtocolResponseAdapter(Response):  # type: ignore[misc]
    """Sends headers unchanged: WebOb would make URLs absolute, and ours already are."""

    def __call__(self, environ: Mapping[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        start_response(self.status, self.headerlist)
        body: Iterable[bytes] = () if environ["REQUEST_METHOD"] == "HEAD" else self.app_iter
        return body


def _matched_handler(request: Request) -> EndpointHandler | None:
    """The handler of the matched endpoint; None at other routes."""
    route = getattr(request, "matched_route", None)
    handlers: Mapping[str, EndpointHandler] = request.registry.endpoint_handlers
    return None if route is None else handlers.get(route.name)


def request_context(request: Request) -> Context:
    """What endpoints, grants and interactions may use besides the request."""
    context: Context = request.request_services.create_context()
    return context


def create_endpoint_view(handler: EndpointHandler) -> Callable[[Request], Response]:

    def view(request: Request) -> Response:
        try:
            return respond(request)
        except ImpersonationDenied:
            # Pages about errors name the manager without reading.
            _ = request.signed_in_account, request.impersonator
            raise

    def respond(request: Request) -> Response:
        outcome: EndpointResult | None = request.environ.get(ENDPOINT_RESULT_KEY)
        if outcome is not None:
            return _render_result(request, outcome)
        if handler.is_preflight(request.method, request.environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD")):
            return build_response(request, handler.preflight_response())
        handler.check_method(request.method)
        protocol_request = build_protocol_request(request, with_browser=handler.reads_browser_state)
        return build_response(request, handler.handle(protocol_request, request.request_services))

    return view


def _render_result(request: Request, outcome: EndpointResult) -> Response:
    """The page for an endpoint's result from outside of Pyramid. Raises its error."""
    request.request_services.context = outcome.context
    if isinstance(outcome.result, Exception):
        raise outcome.result
    return build_response(request, outcome.result)


def includeme(config: Configurator) -> None:
    """Add route and view of every endpoint."""
    identity: IdentityApplication = config.registry.application
    endpoints = identity.protocol_registry.endpoints
    config.registry.endpoint_hosts = {endpoint.path: endpoint.host for endpoint in endpoints}
    config.registry.endpoint_handlers = {}
    # Routes are tried in order, and programs send more requests than browsers.
    for endpoint in sorted(endpoints, key=lambda endpoint: endpoint.host is EndpointHost.LOGIN):
        name = PROTOCOL_ROUTE_PREFIX + endpoint.name
        handler = config.registry.endpoint_handlers[name] = EndpointHandler(endpoint, identity)
        config.add_route(name, endpoint.path, host=endpoint.host)
        config.add_view(create_endpoint_view(handler), route_name=name, permission=NO_PERMISSION_REQUIRED)
