"""Forms are taken only from our own pages (security 11.1): a token bound to a secret, and the browser's own word.

Every unsafe request to a route of the login host is checked. A page checks the token by itself, because it draws the
form again if that has grown old; any other view is checked before it runs.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.crypto import base64url
from identity.crypto.secrets import new_token, same
from identity.domain.applications import web_origin
from identity.http.cookies import is_secure
from identity.http.endpoints import PROTOCOL_ROUTE, protocol_request
from identity.http.people import on_login_host
from identity.provider.request import ProtocolRequest

if TYPE_CHECKING:
    from identity.process import Identity

View = Callable[[object, Request], Response]

FIELD = "csrf_token"

_LABEL = b"identity form"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})
_COOKIE = "form"
_MADE = "identity.form_secret"
_SENT = "identity.sent"


class CrossSite(Exception):
    """The browser says that another site sent this form."""


class StaleForm(Exception):
    """The form's token is missing or belongs to a session that is over."""


def token(request: Request) -> str:
    """The token for forms on this page: an HMAC-SHA256 keyed by the secret to which the page is bound."""
    return base64url.encode(hmac.digest(_secret(request).encode("utf-8"), _LABEL, hashlib.sha256))


def is_fresh(request: Request, presented: str) -> bool:
    """True if the token was made for this browser and the session or sign-in that the page belongs to."""
    return same(token(request).encode("ascii"), presented.encode("utf-8", "surrogatepass"))


def refuse_other_sites(request: Request) -> None:
    """Raise CrossSite if the browser names another origin; Sec-Fetch-Site counts before Origin.

    An Origin of ``null`` says nothing: browsers send it where a referrer policy hides the page. Then the token decides.
    """
    site = request.environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        if site not in _OWN_SITES:
            raise CrossSite(f"Sec-Fetch-Site: {site[:20]}")
        return
    origin = request.environ.get("HTTP_ORIGIN", "null")
    identity: Identity = request.registry.identity
    if origin != "null" and origin.lower() != web_origin(identity.settings.login_url):
        raise CrossSite("Origin")


def what_was_sent(request: Request) -> ProtocolRequest:
    """The request with its body, which can be read from the connection only once. Raises RequestTooLarge."""
    sent: ProtocolRequest | None = request.environ.get(_SENT)
    if sent is None:
        sent = request.environ[_SENT] = protocol_request(request)
    return sent


def checked_form(view: View, info: Any) -> View:
    """View deriver: the check.

    The view option ``checks_form`` is for views that look at the token themselves, ``from_elsewhere`` for those to
    which other sites send people with a form.
    """
    exempt = info.exception_only or info.options.get("from_elsewhere")
    if exempt or str(info.options.get("route_name") or "").startswith(PROTOCOL_ROUTE):
        return view
    checks_token = bool(info.options.get("checks_form"))

    def with_check(context: object, request: Request) -> Response:
        route = getattr(request, "matched_route", None)
        if request.method not in _SAFE_METHODS and route is not None and on_login_host(route):
            refuse_other_sites(request)
            if not checks_token and not is_fresh(request, what_was_sent(request).form().get(FIELD, "")):
                raise StaleForm
        return view(context, request)

    return with_check


checked_form.options = ("checks_form", "from_elsewhere")  # type: ignore[attr-defined]


def _secret(request: Request) -> str:
    """The secret of the session or pending sign-in; where there is neither, of a cookie of its own."""
    bound: str | None = getattr(request, "form_secret", None)
    if bound:
        return bound
    name = _cookie_name(request)
    known: str = request.environ.get(_MADE) or request.cookies.get(name, "")
    if not known:
        known = request.environ[_MADE] = new_token()
        request.add_response_callback(_remember)
    return known


def _remember(request: Request, response: Response) -> None:
    value = request.environ[_MADE]
    response.set_cookie(
        _cookie_name(request),
        value,
        secure=is_secure(request.registry.identity.settings),
        httponly=True,
        samesite="Lax",
        path="/",
    )


def _cookie_name(request: Request) -> str:
    return f"__Host-{_COOKIE}" if is_secure(request.registry.identity.settings) else _COOKIE


def includeme(config: Configurator) -> None:
    """Add the deriver, outermost of all that run before the view."""
    config.add_view_deriver(checked_form, under="private_view")
