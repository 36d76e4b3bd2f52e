"""Forms are accepted only from our own pages (security 11.1): by a token bound to a secret, and the browser's headers.

Every unsafe request to a route of the login host is checked. A page checks the token itself, because it renders the
form again if the token has expired; any other view is checked before it runs.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.crypto import base64url
from identity.crypto.secrets import constant_time_equal, new_token
from identity.domain.applications import web_origin
from identity.http.cookies import has_secure_cookies
from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX, build_protocol_request
from identity.http.html_negotiation import is_login_host_route
from identity.provider.protocol_request import ProtocolRequest

if TYPE_CHECKING:
    from identity.application import IdentityApplication

View = Callable[[object, Request], Response]

CSRF_FIELD = "csrf_token"

_LABEL = b"identity form"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_SITE_VALUES = frozenset({"same-origin", "none"})
_COOKIE_NAME = "form"
_FORM_SECRET_KEY = "identity.form_secret"  # noqa: S105 - a key of the environ
_POSTED_REQUEST_KEY = "identity.sent"


class CrossSiteRequest(Exception):
    """The browser reports that another site sent this form."""


class InvalidFormToken(Exception):
    """The form's token is missing or belongs to an ended session."""


def csrf_token(request: Request) -> str:
    """The token for forms on this page: an HMAC-SHA256 keyed by the secret that the page is bound to."""
    return csrf_token_for(_form_secret(request))


def csrf_token_for(secret: str) -> str:
    """The token of a form that is bound to this secret, on a page that is bound to another."""
    return base64url.encode(hmac.digest(secret.encode("utf-8"), _LABEL, hashlib.sha256))


def is_valid_token(request: Request, presented: str) -> bool:
    """True if the token was created for this browser and the session or sign-in of the page."""
    return constant_time_equal(csrf_token(request).encode("ascii"), presented.encode("utf-8", "surrogatepass"))


def refuse_cross_site_request(request: Request) -> None:
    """Raise CrossSiteRequest if the browser names another origin; Sec-Fetch-Site takes precedence over Origin. The
    Origin ``null`` is inconclusive: browsers send it if a referrer policy hides the page. The token decides then."""
    site = request.environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        if site not in _SAME_SITE_VALUES:
            raise CrossSiteRequest(f"Sec-Fetch-Site: {site[:20]}")
        return
    origin = request.environ.get("HTTP_ORIGIN", "null")
    identity: IdentityApplication = request.registry.application
    if origin != "null" and origin.lower() != web_origin(identity.settings.login_url):
        raise CrossSiteRequest("Origin")


def read_posted_request(request: Request) -> ProtocolRequest:
    """The request with its body, which can be read from the connection only once. Raises RequestTooLarge."""
    sent: ProtocolRequest | None = request.environ.get(_POSTED_REQUEST_KEY)
    if sent is None:
        sent = request.environ[_POSTED_REQUEST_KEY] = build_protocol_request(request)
    return sent


def csrf_deriver(view: View, info: Any) -> View:
    """View deriver that checks forms. The view option ``checks_form`` is for views that check the token themselves,
    ``from_elsewhere`` for those that receive forms from other sites."""
    exempt = info.exception_only or info.options.get("from_elsewhere")
    if exempt or str(info.options.get("route_name") or "").startswith(PROTOCOL_ROUTE_PREFIX):
        return view
    checks_token = bool(info.options.get("checks_form"))

    def with_check(context: object, request: Request) -> Response:
        route = getattr(request, "matched_route", None)
        if request.method not in _SAFE_METHODS and route is not None and is_login_host_route(route):
            refuse_cross_site_request(request)
            if not checks_token and not is_valid_token(
                request, read_posted_request(request).parse_form().get(CSRF_FIELD, "")
            ):
                raise InvalidFormToken
        return view(context, request)

    return with_check


csrf_deriver.options = ("checks_form", "from_elsewhere")  # type: ignore[attr-defined]


def _form_secret(request: Request) -> str:
    """The secret of the session or pending sign-in; without either, that of a separate cookie."""
    bound: str | None = getattr(request, "form_secret", None)
    if bound:
        return bound
    name = _cookie_name(request)
    known: str = request.environ.get(_FORM_SECRET_KEY) or request.cookies.get(name, "")
    if not known:
        known = request.environ[_FORM_SECRET_KEY] = new_token()
        request.add_response_callback(_set_form_cookie)
    return known


def _set_form_cookie(request: Request, response: Response) -> None:
    value = request.environ[_FORM_SECRET_KEY]
    response.set_cookie(
        _cookie_name(request),
        value,
        secure=has_secure_cookies(request.registry.application.settings),
        httponly=True,
        samesite="Lax",
        path="/",
    )


def _cookie_name(request: Request) -> str:
    return f"__Host-{_COOKIE_NAME}" if has_secure_cookies(request.registry.application.settings) else _COOKIE_NAME


def includeme(config: Configurator) -> None:
    """Add the deriver, outermost of all that run before the view."""
    config.add_view_deriver(csrf_deriver, under="security_headers_deriver")
