"""Security headers of all responses outside the protocol: no caching, no content sniffing, HSTS."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX

if TYPE_CHECKING:
    from identity.application import IdentityApplication

View = Callable[[object, Request], Response]

#: Content-Security-Policy of pages (security 11.2). Without form-action: browsers apply it to redirects after a POST,
#: so a sign-in could not lead to the application.
SIGN_IN_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
PAGE_POLICY = f"{SIGN_IN_POLICY}; form-action 'self'"

_SIGN_IN_PATH_PREFIX = "/login/"


def page_security_headers(request: Request) -> dict[str, str]:
    """Headers of HTML pages; the path decides whether a page belongs to a pending sign-in."""
    signing_in = request.environ.get("PATH_INFO", "").startswith(_SIGN_IN_PATH_PREFIX)
    return {
        "Content-Security-Policy": SIGN_IN_POLICY if signing_in else PAGE_POLICY,
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
    }


def security_headers_deriver(view: View, info: Any) -> View:
    """View deriver: adds headers that the view has not set. Protocol responses bring their own."""
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
    config.add_view_deriver(security_headers_deriver)
