"""/sign-out?request= and /signed-out?request=: the pages of a logout requested by an application."""

from collections.abc import Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.api.endpoints import Parameters, build_response, request_context
from identity.api.entities import Application, Organization
from identity.api.pages import Form, Page
from identity.api.plugins import cached_property
from identity.api.sign_in import SignOutPage
from identity.plugins.end_session.endpoint import (
    PENDING_REQUEST_PARAMETER,
    REDIRECT_SCHEMES,
    LogoutRequest,
    end_requested_sessions,
    finish_logout_request,
    load_pending_request,
)


class LogoutRequestPage(Page):
    """A page whose URL names an application's pending logout request."""

    @cached_property
    def logout_request(self) -> LogoutRequest:
        """The application and where to return to. Raises UnredirectableError."""
        query = Parameters.parse(self.request.environ.get("QUERY_STRING", "").encode("latin-1"))
        request_id = query.get(PENDING_REQUEST_PARAMETER, "")
        return load_pending_request(request_id, self.request.browser_state, request_context(self.request))

    def branding_owner(self) -> tuple[Organization | None, Application | None]:
        """The branding of the application that requests the logout."""
        client = self.logout_request.client
        return (None, None) if client is None else (client.responsible_organization, client.application)

    def common_variables(self) -> Mapping[str, object]:
        client, uri = self.logout_request.client, self.logout_request.post_logout_redirect_uri
        name = None if client is None else self.page_branding.application or client.application.name
        return {"application": name, "return_to": uri}


class ConfirmLogoutPage(LogoutRequestPage, SignOutPage):
    template = "end_session/confirm_logout.html"
    has_choice = False

    @property
    def redirects_off_site(self) -> bool:
        return self.logout_request.post_logout_redirect_uri is not None or super().redirects_off_site

    def submit(self, form: Form) -> Response:
        context, uri = request_context(self.request), self.logout_request.post_logout_redirect_uri
        followed = uri is not None and uri.startswith(REDIRECT_SCHEMES)
        home = "" if followed else context.settings.login_url + self.done_path
        return build_response(
            self.request, end_requested_sessions(self.logout_request, self.accounts, context, fallback_url=home)
        )


class LogoutDonePage(LogoutRequestPage):
    """A native application opens only after a click."""

    template = "end_session/logout_done.html"


def find_logout_return(request: Request, request_id: str) -> Response | None:
    response = finish_logout_request(request_id, request.browser_state, request_context(request))
    return None if response is None else build_response(request, response)
