"""/sign-out asks for confirmation and ends all sessions of this browser, or one of several; /signed-out confirms it.

A plugin whose applications request logouts replaces both pages for its requests by ``config.add_logout_pages``.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.cached_property import cached_property
from identity.domain.sessions import SignedInAccount
from identity.http.endpoint_routes import build_response, request_context
from identity.pages.forms import Form
from identity.pages.page import FormPage, Page, page_view
from identity.provider.logout import CONFIRMATION_PATH, SIGNED_OUT_PATH, LogoutHandler


class SignOutPage(FormPage):
    """Reached from error pages, and from the account menu, whose form posts here."""

    PATH: ClassVar[str] = CONFIRMATION_PATH

    template = "sign_out.html"
    #: Whether one of several accounts can be signed out.
    has_choice: ClassVar[bool] = True

    @cached_property
    def accounts(self) -> tuple[SignedInAccount, ...]:
        """The sessions of this browser, including expired ones."""
        signed_in_accounts: tuple[SignedInAccount, ...] = self.request.services.sessions.list_all_by_secrets(
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
        if not self.live_accounts:
            return self.redirect(self.done_path)
        return {
            "login_names": [account.subject.login_name for account in self.live_accounts],
            "choices": self.live_accounts if self.has_choice and len(self.live_accounts) > 1 else (),
        }

    @property
    def redirects_off_site(self) -> bool:
        return bool(request_context(self.request).protocol.logout_handlers)

    def submit(self, form: Form) -> Response:
        """The sessions of the account that ``session`` names end; those of all accounts if it is empty."""
        context, chosen = request_context(self.request), form.text("session")
        ending = [account for account in self.accounts if chosen in ("", account.session.id)]
        remain = any(account.session.id != chosen for account in self.live_accounts) if chosen else False
        return_to = context.settings.login_url + (self.ACCOUNT_PATH if remain else self.done_path)
        return build_response(self.request, LogoutHandler.end_sessions(ending, context, return_to=return_to))

    @staticmethod
    def finish_logout(request: Request, request_id: str) -> Response:
        """The response to a browser that comes back from a logout at an upstream provider."""
        found = (find(request, request_id) for find in request.registry.pages.logout_returns)
        response: Response | None = next((item for item in found if item is not None), None)
        if response is None:
            response = build_response(request, request_context(request).redirect_to_page(SIGNED_OUT_PATH))
        return response


class SignedOutPage(Page):
    template = "signed_out.html"


def add_logout_pages(
    config: Configurator,
    query_parameter: str,
    confirm: type[SignOutPage],
    done: type[Page],
    find_return: Callable[[Request, str], Response | None],
) -> None:
    """Directive: the pages that take the place of the service's own at the same paths if the query names the parameter;
    and where a browser goes that comes back from a logout elsewhere. ``find_return`` gets the id of the pending
    request, and returns None for one that is not the plugin's."""
    for route, page in (("sign_out", confirm), ("signed_out", done)):
        config.add_view(
            page_view(page),
            route_name=route,
            query_parameter=query_parameter,
            permission=NO_PERMISSION_REQUIRED,
            checks_form=True,
        )
    config.registry.pages.logout_returns.append(find_return)


def includeme(config: Configurator) -> None:
    config.add_directive("add_logout_pages", add_logout_pages)
    config.add_page("sign_out", CONFIRMATION_PATH, SignOutPage, permission=NO_PERMISSION_REQUIRED)
    config.add_page("signed_out", SIGNED_OUT_PATH, SignedOutPage, permission=NO_PERMISSION_REQUIRED)
