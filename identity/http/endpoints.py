"""Protocol endpoints as Pyramid routes: ProtocolRequest ← request, ProtocolResponse → response."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.provider.endpoint import Endpoint
from identity.provider.endpoints import ENDPOINTS
from identity.provider.errors import MethodNotAllowed, RequestTooLarge
from identity.provider.request import Context, ProtocolRequest, ProtocolResponse

if TYPE_CHECKING:
    from identity.app import Identity

PROTOCOL_ROUTE = "protocol."
MAX_BODY = 64 * 1024

_NOT_MODIFIED = 304


def protocol_request(request: Request) -> ProtocolRequest:
    """The request as the protocol sees it. Raises RequestTooLarge without reading a body over MAX_BODY."""
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
    return Response(app_iter=[answer.body], status=answer.status, headerlist=headers)


def view_of(endpoint: Endpoint) -> Callable[[Request], Response]:
    """The endpoint's Pyramid view."""
    methods = frozenset(endpoint.methods) | ({"HEAD"} if "GET" in endpoint.methods else set())

    def view(request: Request) -> Response:
        if request.method not in methods:
            raise MethodNotAllowed(endpoint.methods)
        identity: Identity = request.registry.identity
        services = request.services
        context = Context(services.now, identity.settings, identity.protocol, identity.provider, services)
        return respond(request, endpoint.handle(protocol_request(request), context))

    return view


def add_endpoint(config: Configurator, endpoint: Endpoint) -> None:
    """Directive: route and view of one protocol endpoint."""
    name = PROTOCOL_ROUTE + endpoint.name
    config.add_route(name, endpoint.path, host=endpoint.host)
    config.add_view(view_of(endpoint), route_name=name, permission=NO_PERMISSION_REQUIRED)


def includeme(config: Configurator) -> None:
    """Add every endpoint of the table."""
    config.add_directive("add_endpoint", add_endpoint)
    for endpoint in ENDPOINTS:
        config.add_endpoint(endpoint)
