"""Headers of every answer that is not the protocol's: never cached, never guessed at, https for ever."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX

if TYPE_CHECKING:
    from identity.application import IdentityApplication

View = Callable[[object, Request], Response]

#: What a page may load and do (security 11.2). It carries no form-action: browsers hold whatever follows a POST to
#: it, so that a sign-in could not lead to the application.
SIGN_IN_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
PAGE_POLICY = f"{SIGN_IN_POLICY}; form-action 'self'"

_SIGN_IN_PATH_PREFIX = "/login/"


def page_security_headers(request: Request) -> dict[str, str]:
    """The headers of HTML for people; by its address a page is one of a pending sign-in or not."""
    signing_in = request.environ.get("PATH_INFO", "").startswith(_SIGN_IN_PATH_PREFIX)
    return {
        "Content-Security-Policy": SIGN_IN_POLICY if signing_in else PAGE_POLICY,
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
    }


def security_headers_deriver(view: View, info: Any) -> View:
    """View deriver: adds what the view has not set itself. Protocol answers bring all of it along."""
    if str(info.options.get("route_name") or "").startswith(PROTOCOL_ROUTE_PREFIX):
        return view
    identity: IdentityApplication = info.registry.application

    def with_headers(context: object, request: Request) -> Response:
        response = view(context, request)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        if response.content_type == "text/html":
            for name, value in page_security_headers(request).items():
                response.headers.setdefault(name, value)
        if identity.has_hsts:
            response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        return response

    return with_headers


def includeme(config: Configurator) -> None:
    """Add the deriver."""
    config.add_view_deriver(security_headers_deriver)
