"""Protocol endpoints as Pyramid routes: ProtocolRequest ← request, ProtocolResponse → response."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity import watching
from identity.http.cookies import headers_for
from identity.http.cors import is_preflight, origin_headers, preflight
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, Host
from identity.provider.endpoints import ENDPOINTS
from identity.provider.errors import MethodNotAllowed, RequestTooLarge
from identity.provider.request import NO_BROWSER, ProtocolRequest, ProtocolResponse

if TYPE_CHECKING:
    from identity.process import Identity

PROTOCOL_ROUTE = "protocol."
MAX_BODY = 64 * 1024

log = logging.getLogger(__name__)

_NOT_MODIFIED = 304
_OF_BODY = frozenset({"Content-Length", "Content-Type"})


def protocol_request(request: Request, *, with_browser: bool = False) -> ProtocolRequest:
    """The request as the protocol sees it; cookies are looked at where asked for.

    Raises RequestTooLarge without reading a body over MAX_BODY.
    """
    environ = request.environ
    length = request.content_length or 0
    if length > MAX_BODY:
        raise RequestTooLarge(f"the body is larger than {MAX_BODY} bytes")
    return ProtocolRequest(
        method=environ["REQUEST_METHOD"],
        query=environ.get("QUERY_STRING", "").encode("latin-1"),
        body=_body(environ, length),
        content_type=environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower(),
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
    headers = [("X-Content-Type-Options", "nosniff")]
    # A 304 has no body, and may only name the length that a 200 would have (RFC 9110 §8.6).
    if answer.status != _NOT_MODIFIED:
        headers.append(("Content-Length", str(len(answer.body))))
    if answer.body:
        headers.append(("Content-Type", answer.content_type))
    headers.extend(answer.headers.items())
    identity: Identity = request.registry.identity
    if identity.strict_transport:
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    if "HTTP_ORIGIN" in request.environ and is_cross_origin(request):
        headers.extend(origin_headers(request))
    if answer.cookies:
        headers.extend(headers_for(request, answer.cookies))
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


def is_cross_origin(request: Request) -> bool:
    """True for the endpoints that scripts of registered applications may call."""
    route = getattr(request, "matched_route", None)
    return route is not None and route.name in request.registry.cross_origin_routes


def context_of(request: Request) -> Context:
    """What endpoints, grants and interactions may use beside the request."""
    identity: Identity = request.registry.identity
    services = request.services
    return Context(services.now, identity.settings, identity.protocol, lambda: identity.provider, services)


def _lagging_answer(endpoint: Endpoint, request: Request, asked: ProtocolRequest) -> ProtocolResponse | None:
    """What the endpoint says by a storage that may be behind; None if the one has to be asked that is not.

    A refusal does not count: what was made a moment ago may not be there yet. Neither does a failure.
    """
    if request.begin_lagging():
        try:
            answer = endpoint.handle(asked, context_of(request))
        except Exception as problem:
            log.debug("asked anew: %s", type(problem).__name__)
        else:
            if not answer.denies:
                watching.came_to(watching.READ, endpoint.name, watching.FROM_STANDBY)
                return answer
        request.end_lagging()
    watching.came_to(watching.READ, endpoint.name, watching.FROM_PRIMARY)
    return None


def view_of(endpoint: Endpoint, *, lags: bool) -> Callable[[Request], Response]:
    """The endpoint's Pyramid view. ``lags`` says that there may be a storage that is behind."""
    # A HEAD must not do what a GET does, where that is more than showing something (RFC 9110 §9.3.2).
    shows = "GET" in endpoint.methods and not endpoint.writes
    methods = frozenset(endpoint.methods) | ({"HEAD"} if shows else set())
    with_browser = endpoint.host is Host.LOGIN
    cross_origin, may_lag = endpoint.cross_origin, endpoint.may_lag and lags

    def view(request: Request) -> Response:
        if cross_origin and is_preflight(request):
            return respond(request, preflight(endpoint))
        if request.method not in methods:
            raise MethodNotAllowed(endpoint.methods)
        asked = protocol_request(request, with_browser=with_browser)
        answer = _lagging_answer(endpoint, request, asked) if may_lag else None
        if answer is None:
            request.protocol_context = context = context_of(request)
            answer = endpoint.handle(asked, context)
        return respond(request, answer)

    return view


def add_endpoint(config: Configurator, endpoint: Endpoint) -> None:
    """Directive: route and view of one protocol endpoint; a plugin's is counted in with those of the service."""
    identity: Identity = config.registry.identity
    if endpoint not in identity.protocol.endpoints:
        identity.add_endpoint(endpoint)
    name = PROTOCOL_ROUTE + endpoint.name
    if endpoint.cross_origin:
        config.registry.cross_origin_routes.add(name)
    config.add_route(name, endpoint.path, host=endpoint.host)
    view = view_of(endpoint, lags=identity.backend.lags)
    config.add_view(view, route_name=name, permission=NO_PERMISSION_REQUIRED)


def includeme(config: Configurator) -> None:
    """Add every endpoint of the table."""
    config.registry.cross_origin_routes = set()
    config.add_directive("add_endpoint", add_endpoint)
    # Routes are tried in order, and programs ask more often than browsers.
    for endpoint in sorted(ENDPOINTS, key=lambda one: one.host is Host.LOGIN):
        config.add_endpoint(endpoint)
        config.registry.in_loop.add(endpoint.path)
