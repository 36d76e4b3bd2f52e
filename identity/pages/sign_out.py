"""/sign-out asks for confirmation and ends all sessions of this browser; /signed-out confirms it.

A plugin whose applications request logouts adds views with a ``query_parameter`` to both routes, and
``config.add_logout_return``.
"""

from collections.abc import Callable, Mapping

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.cached_property import cached_property
from identity.domain.sessions import SignedInAccount
from identity.http.endpoint_routes import build_response, request_context
from identity.pages.forms import Form
from identity.pages.page import FormPage, Page
from identity.provider.logout import CONFIRMATION_PATH, SIGNED_OUT_PATH, end_sessions
from identity.provider.pending_request import store_pending_request
from identity.provider.responses import redirect_response

#: Returns where a logout elsewhere ends, for the pending request of this id; None if it is not the plugin's.
LogoutReturn = Callable[[Request, str], Response | None]


class SignOutPage(FormPage):
    """Reached from error pages, and from the account menu, whose form posts here."""

    template = "sign_out.html"

    @cached_property
    def accounts(self) -> tuple[SignedInAccount, ...]:
        """The sessions of this browser, including expired ones."""
        signed_in_accounts: tuple[SignedInAccount, ...] = self.request.services.sessions.list_by_secrets(
            self.request.browser_state.sessions.values()
        )
        return signed_in_accounts

    @property
    def done_path(self) -> str:
        """The path of the final page, with the parameters of this one."""
        query = self.request.environ.get("QUERY_STRING", "")
        return f"{SIGNED_OUT_PATH}?{query}" if query else SIGNED_OUT_PATH

    def template_variables(self) -> Mapping[str, object] | Response:
        """The accounts; redirects to the final page if no account is signed in."""
        live = [account for account in self.accounts if self.request.services.sessions.is_live(account)]
        if not live:
            return self.redirect(self.done_path)
        return {"login_names": [account.subject.login_name for account in live]}

    @property
    def redirects_off_site(self) -> bool:
        return bool(request_context(self.request).protocol.logout_handlers)

    def submit(self, form: Form) -> Response:
        context = request_context(self.request)
        response = end_sessions(
            self.accounts,
            context,
            return_to=context.settings.login_url + self.done_path,
            store_request=lambda: store_pending_request({}, context),
        )
        return build_response(self.request, response)


class SignedOutPage(Page):
    template = "signed_out.html"


def finish_logout(request: Request, request_id: str) -> Response:
    """The response to a browser that comes back from a logout at an upstream provider."""
    for find in request.registry.pages.logout_returns:
        found: Response | None = find(request, request_id)
        if found is not None:
            return found
    return build_response(request, redirect_response(request.registry.application.settings.login_url + SIGNED_OUT_PATH))


def add_logout_return(config: Configurator, find: LogoutReturn) -> None:
    """Directive: choose where a browser goes that comes back from a logout elsewhere."""
    config.registry.pages.logout_returns.append(find)


def includeme(config: Configurator) -> None:
    config.add_directive("add_logout_return", add_logout_return)
    config.add_page("sign_out", CONFIRMATION_PATH, SignOutPage, permission=NO_PERMISSION_REQUIRED)
    config.add_page("signed_out", SIGNED_OUT_PATH, SignedOutPage, permission=NO_PERMISSION_REQUIRED)
