"""A manager who is signed in as a person can only look: requests that may write are refused, except leaving.

The one place where this is decided for every view, those of plugins included. The console is closed by the security
policy. Protocol endpoints at the login host are closed unless they allow impersonators, as the authorization endpoint
does, which refuses more itself; those at other hosts get no cookies. Management tokens are not of a browser's session.
"""

from collections.abc import Callable
from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.sessions import SignedInAccount
from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX
from identity.http.route_predicates import route_credential
from identity.http.security_policy import IMPERSONATION_DENIAL, ImpersonationDenied
from identity.http.transactions import needs_transaction

View = Callable[[object, Request], Response]

END_IMPERSONATION_ROUTE = "impersonation.end"
#: The routes that an impersonated session may post to.
ALLOWED_ROUTES = frozenset({END_IMPERSONATION_ROUTE, "sign_out"})


def impersonated_account(request: Request) -> SignedInAccount | None:
    """The account as which a manager is signed in at this browser; None without an impersonated session."""
    if not request.browser_state.sessions:
        return None
    account: SignedInAccount | None = request.signed_in_account
    return account if account is not None and account.session.is_impersonated else None


def refuse_impersonator(request: Request) -> None:
    """Raise ImpersonationDenied in an impersonated session."""
    if impersonated_account(request) is not None:
        # Pages about errors name the manager without reading.
        _ = request.impersonator
        raise ImpersonationDenied(IMPERSONATION_DENIAL)


def impersonation_deriver(view: View, info: Any) -> View:
    """View deriver that refuses requests which may write, also with GET."""
    route_name = str(info.options.get("route_name") or "")
    if info.exception_only or route_name in ALLOWED_ROUTES or route_name.startswith(PROTOCOL_ROUTE_PREFIX):
        return view

    def guarded(context: object, request: Request) -> Response:
        if route_credential(request) != "bearer" and needs_transaction(request):
            refuse_impersonator(request)
        return view(context, request)

    return guarded


def includeme(config: Configurator) -> None:
    config.add_view_deriver(impersonation_deriver, under="security_headers_deriver")
