"""Signing out at this browser: its sessions end, here and at upstream providers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from identity.domain.sessions import SignedInAccount
from identity.provider.context import Context
from identity.provider.protocol_request import Cookie, CookieKind, ProtocolResponse
from identity.services.container import Services

#: The page that asks the user to confirm, and the default page after logout.
CONFIRMATION_PATH = "/sign-out"
SIGNED_OUT_PATH = "/signed-out"


class LogoutHandler(ABC):
    """Called before a session ends, for any reason. The session ends even if the logout elsewhere fails. The remote
    logout returns to ``identity.pages.sign_out.SignOutPage.finish_logout``."""

    name: ClassVar[str]

    @abstractmethod
    def handles(self, account: SignedInAccount, services: Services) -> bool:
        """True if the account is to be signed out elsewhere, too. Must not write."""

    @abstractmethod
    def begin_logout(self, account: SignedInAccount, request_id: str, services: Services) -> str:
        """The path on the login host that starts the logout. ``request_id`` is the pending request to resume
        afterwards, in the same browser."""

    def precede_return(
        self, accounts: Sequence[SignedInAccount], return_to: str, context: Context
    ) -> tuple[str, tuple[Cookie, ...]]:
        """Where the browser goes after these sessions have ended, in this transaction, with cookies: a page that leads
        on to ``return_to``, or ``return_to`` itself, as by default."""
        return return_to, ()

    @staticmethod
    def end_sessions(
        accounts: Iterable[SignedInAccount],
        context: Context,
        *,
        return_to: str,
        parameters: Mapping[str, str] = MappingProxyType({}),
        pending_request_id: str | None = None,
        client_id: str | None = None,
    ) -> ProtocolResponse:
        """End these sessions and redirect to the URL ``return_to``. A logout at an upstream provider comes first; then
        the request with these ``parameters`` continues, which is stored unless it has a ``pending_request_id``.
        ``client_id`` is the application that requested the logout."""
        accounts = tuple(accounts)
        cookies = [Cookie(CookieKind.SESSION, account.session.id) for account in accounts]
        found = (
            (handler, account)
            for account in accounts
            for handler in context.protocol.logout_handlers.values()
            if handler.handles(account, context.services)
        )
        handler, account = next(found, (None, None))
        if handler is not None and account is not None:
            if pending_request_id is None:
                pending_request_id, cookie = context.store_request(
                    parameters, ui_locales=parameters.get("ui_locales", "")
                )
                cookies.insert(0, cookie)
            return_to = context.settings.login_url + handler.begin_logout(account, pending_request_id, context.services)
        for account in accounts:
            context.services.sessions.end(account, client_id=client_id)
        for logout_handler in context.protocol.logout_handlers.values():
            return_to, added = logout_handler.precede_return(accounts, return_to, context)
            cookies = [*added, *cookies]
        return ProtocolResponse.redirect(return_to, *cookies)
