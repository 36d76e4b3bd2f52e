"""Signing out at this browser: its sessions end, here and at upstream providers."""

from collections.abc import Callable
from dataclasses import replace

from identity.domain.sessions import SignedInAccount
from identity.provider.context import Context
from identity.provider.protocol_request import Cookie, CookieKind, ProtocolResponse
from identity.provider.responses import redirect_response

#: The page that asks the user to confirm, and the default page after logout.
CONFIRMATION_PATH = "/sign-out"
SIGNED_OUT_PATH = "/signed-out"


def end_sessions(
    accounts: tuple[SignedInAccount, ...],
    context: Context,
    *,
    return_to: str,
    store_request: Callable[[], tuple[str, tuple[Cookie, ...]]],
    client_id: str | None = None,
) -> ProtocolResponse:
    """End these sessions and redirect to the URL ``return_to``. A logout at an upstream provider comes first:
    ``store_request`` returns the id of the pending request that continues afterwards, and cookies for the browser if it
    is newly stored. ``client_id`` is the application that requested the logout."""
    external_logout = _external_logout(accounts, context, store_request)
    for account in accounts:
        context.services.sessions.end(account, client_id=client_id)
    cookies = tuple(Cookie(CookieKind.SESSION, account.session.id) for account in accounts)
    if external_logout is not None:
        return replace(external_logout, cookies=(*external_logout.cookies, *cookies))
    return redirect_response(return_to, *cookies)


def _external_logout(
    accounts: tuple[SignedInAccount, ...],
    context: Context,
    store_request: Callable[[], tuple[str, tuple[Cookie, ...]]],
) -> ProtocolResponse | None:
    for account in accounts:
        for handler in context.protocol.logout_handlers.values():
            if handler.handles(account, context.services):
                request_id, cookies = store_request()
                path = handler.begin_logout(account, request_id, context.services)
                return redirect_response(context.settings.login_url + path, *cookies)
    return None
