"""/sign-out asks for confirmation and ends all sessions of this browser; /signed-out confirms it."""

from collections.abc import Mapping

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.cached_property import cached_property
from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.domain.sessions import SignedInAccount
from identity.http.endpoint_routes import build_response, request_context
from identity.pages.forms import Form
from identity.pages.page import FormPage, Page
from identity.provider.endpoints.end_session import (
    CONFIRMATION_PATH,
    EMPTY_LOGOUT_REQUEST,
    PENDING_REQUEST_PARAMETER,
    REDIRECT_SCHEMES,
    SIGNED_OUT_PATH,
    LogoutRequest,
    end_sessions,
    load_pending_request,
)
from identity.provider.parameters import Parameters


class LogoutPage(Page):
    """A page whose URL may name an application's pending logout request."""

    @cached_property
    def logout_request(self) -> LogoutRequest:
        """The application and where to return to. Raises UnredirectableError."""
        query = Parameters.parse(self.request.environ.get("QUERY_STRING", "").encode("latin-1"))
        waiting = query.get_value(PENDING_REQUEST_PARAMETER)
        return (
            load_pending_request(waiting, self.request.browser_state, request_context(self.request))
            if waiting
            else EMPTY_LOGOUT_REQUEST
        )

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        """The branding of the application that requests the logout."""
        client = self.logout_request.client
        return (None, None) if client is None else (client.organization, client.application)

    @property
    def application_name(self) -> str | None:
        client = self.logout_request.client
        return None if client is None else self.page_branding.application or client.application.name

    @property
    def done_path(self) -> str:
        """The path of the final page, which leads back to the application."""
        query = self.request.environ.get("QUERY_STRING", "")
        return f"{SIGNED_OUT_PATH}?{query}" if query else SIGNED_OUT_PATH


class ConfirmLogoutPage(LogoutPage, FormPage):
    """Requested by an application, or from the account menu, whose form posts here."""

    template = "login/confirm_logout.html"

    @cached_property
    def accounts(self) -> tuple[SignedInAccount, ...]:
        """The sessions of this browser, including expired ones."""
        signed_in_accounts: tuple[SignedInAccount, ...] = self.request.services.sessions.list_by_secrets(
            self.request.browser_state.sessions.values()
        )
        return signed_in_accounts

    def template_variables(self) -> Mapping[str, object] | Response:
        """The application and the accounts; redirects to the final page if no account is signed in."""
        live = [account for account in self.accounts if self.request.services.sessions.is_live(account)]
        application = self.application_name
        if not live:
            return self.redirect(self.done_path)
        return {"application": application, "login_names": [account.subject.login_name for account in live]}

    @property
    def redirects_off_site(self) -> bool:
        return self.logout_request.post_logout_redirect_uri is not None or bool(
            request_context(self.request).protocol.logout_handlers
        )

    def submit(self, form: Form) -> Response:
        context = request_context(self.request)
        followed = (
            self.logout_request.post_logout_redirect_uri is not None
            and self.logout_request.post_logout_redirect_uri.startswith(REDIRECT_SCHEMES)
        )
        home = "" if followed else context.settings.login_url + self.done_path
        return build_response(
            self.request, end_sessions(self.logout_request, self.accounts, context, fallback_url=home)
        )


class LogoutDonePage(LogoutPage):
    """The final page. A native application opens only by a click."""

    template = "login/logout_done.html"

    def template_variables(self) -> Mapping[str, object]:
        return {"application": self.application_name, "return_to": self.logout_request.post_logout_redirect_uri}


def add_logout_pages(config: Configurator) -> None:
    config.add_page("sign_out", CONFIRMATION_PATH, ConfirmLogoutPage, permission=NO_PERMISSION_REQUIRED)
    config.add_page("signed_out", SIGNED_OUT_PATH, LogoutDonePage, permission=NO_PERMISSION_REQUIRED)
