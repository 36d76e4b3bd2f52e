"""Protocol endpoints as Pyramid routes: ProtocolRequest ← request, ProtocolResponse → response."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.environ import OUTCOME
from identity.http.protocol import MAX_BODY, EndpointHandler, Outcome, content_type_of, response_headers, too_large
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.endpoints import ENDPOINTS
from identity.provider.request import NO_BROWSER, ProtocolRequest, ProtocolResponse

if TYPE_CHECKING:
    from identity.process import Identity

PROTOCOL_ROUTE = "protocol."

_OF_BODY = frozenset({"Content-Length", "Content-Type"})


def protocol_request(request: Request, *, with_browser: bool = False) -> ProtocolRequest:
    """The request as the protocol sees it; cookies are looked at where asked for.

    Raises RequestTooLarge without reading a body over MAX_BODY.
    """
    environ = request.environ
    length = request.content_length or 0
    if length > MAX_BODY:
        raise too_large()
    return ProtocolRequest(
        method=environ["REQUEST_METHOD"],
        query=environ.get("QUERY_STRING", "").encode("latin-1"),
        body=_body(environ, length),
        content_type=content_type_of(environ.get("CONTENT_TYPE", "")),
        authorization=environ.get("HTTP_AUTHORIZATION"),
        if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
        browser=request.browser if with_browser else NO_BROWSER,
        resumed=request.matchdict.get("request") if with_browser else None,
    )


def _body(environ: Mapping[str, Any], length: int) -> bytes:
    if not length:
        return b""
    stream = environ["wsgi.input"]
    # An earlier attempt at this request has read it already.
    if environ.get("retry.attempt"):
        stream.seek(0)
    body: bytes = stream.read(length)
    return body


def respond(request: Request, answer: ProtocolResponse) -> Response:
    """The answer as a Pyramid response, with the headers that every protocol answer carries."""
    handler = _handler_of(request)
    if handler is None:
        headers = response_headers(answer, request.registry.identity, lambda: request.browser)
    else:
        origin = request.environ.get("HTTP_ORIGIN")
        headers = handler.headers(answer, origin, request.opened, lambda: request.browser)
    if answer.form_post is not None:
        drawn: Response = request.registry.draw_form_post(request, answer.form_post)
        drawn.headerlist = [*drawn.headerlist, *(one for one in headers if one[0] not in _OF_BODY)]
        return drawn
    return _Answer(app_iter=[answer.body], status=answer.status, headerlist=headers)


class _Answer(Response):  # type: ignore[misc]
    """Its headers go out as they are; WebOb would go through them for an address to make absolute, and ours all are."""

    def __call__(self, environ: Mapping[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        """The answer; for HEAD without its body."""
        start_response(self.status, self.headerlist)
        body: Iterable[bytes] = () if environ["REQUEST_METHOD"] == "HEAD" else self.app_iter
        return body


def _handler_of(request: Request) -> EndpointHandler | None:
    """That of the endpoint at which the request arrived; None at other routes."""
    route = getattr(request, "matched_route", None)
    handlers: Mapping[str, EndpointHandler] = request.registry.endpoint_handlers
    return None if route is None else handlers.get(route.name)


def context_of(request: Request) -> Context:
    """What endpoints, grants and interactions may use beside the request."""
    context: Context = request.opened.new_context()
    return context


def view_of(handler: EndpointHandler) -> Callable[[Request], Response]:
    """The endpoint's Pyramid view."""

    def view(request: Request) -> Response:
        outcome: Outcome | None = request.environ.get(OUTCOME)
        if outcome is not None:
            return _drawn(request, outcome)
        if handler.is_preflight(request.method, request.environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD")):
            return respond(request, handler.preflight())
        handler.check_method(request.method)
        asked = protocol_request(request, with_browser=handler.has_browser)
        return respond(request, handler.answer(asked, request.opened))

    return view


def _drawn(request: Request, outcome: Outcome) -> Response:
    """The page for what an endpoint has come to outside of Pyramid. Raises its error."""
    request.opened.context = outcome.context
    if isinstance(outcome.result, Exception):
        raise outcome.result
    return respond(request, outcome.result)


def add_endpoint(config: Configurator, endpoint: Endpoint) -> None:
    """Directive: route and view of one protocol endpoint; a plugin's is counted in with those of the service."""
    identity: Identity = config.registry.identity
    if endpoint not in identity.protocol.endpoints:
        identity.add_endpoint(endpoint)
    name = PROTOCOL_ROUTE + endpoint.name
    handler = config.registry.endpoint_handlers[name] = EndpointHandler(endpoint, identity)
    config.add_route(name, endpoint.path, host=endpoint.host)
    config.add_view(view_of(handler), route_name=name, permission=NO_PERMISSION_REQUIRED)


def includeme(config: Configurator) -> None:
    """Add every endpoint of the table."""
    config.registry.endpoint_handlers = {}
    config.add_directive("add_endpoint", add_endpoint)
    # Routes are tried in order, and programs ask more often than browsers.
    for endpoint in sorted(ENDPOINTS, key=lambda one: one.host is Host.LOGIN):
        config.add_endpoint(endpoint)
