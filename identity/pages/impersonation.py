"""The banner of an impersonated session, and the page that its button posts to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.users import Subject
from identity.http.cookies import request_cookie_headers
from identity.http.csrf import csrf_token_for
from identity.http.impersonation import END_IMPERSONATION_ROUTE, impersonated_account
from identity.pages.flash_messages import path_with_flash
from identity.pages.forms import Form
from identity.pages.page import FormPage, Page
from identity.pages.signed_in_page import SignedInPage
from identity.provider.protocol_request import Cookie, CookieKind

END_PATH = "/impersonation/end"


@dataclass(frozen=True, kw_only=True)
class ImpersonationBanner:
    """Who is signed in as whom, until when, and the form that ends it."""

    name: str
    impersonator: str
    ends_at: datetime
    end_path: str
    csrf_token: str


def load_banner(request: Request) -> ImpersonationBanner | None:
    """The banner of every page in an impersonated session; None in others. Pages about errors must not depend on the
    storage: they show it if the session has been read."""
    if (
        getattr(request, "exception", None) is not None
        and not {"signed_in_account", "impersonator"} <= vars(request).keys()
    ):
        return None
    account = impersonated_account(request)
    if account is None:
        return None
    manager: Subject | None = request.impersonator
    return ImpersonationBanner(
        name=account.subject.user.display_name,
        impersonator=account.session.impersonator_id or "" if manager is None else manager.user.display_name,
        ends_at=account.session.ends_at,
        end_path=END_PATH,
        csrf_token=csrf_token_for(request.browser_state.sessions[account.session.id]),
    )


class EndImpersonationPage(SignedInPage, FormPage):
    """Returns to the manager's own session. A page without content: the button is in the banner."""

    def template_variables(self) -> Mapping[str, object] | Response:
        return self.redirect(Page.ACCOUNT_PATH)

    def submit(self, form: Form) -> Response:
        account = impersonated_account(self.request)
        if account is None:
            return self.redirect("/")
        self.request.services.sessions.end(account)
        path = self.renderer.impersonation_return_path(account.subject.user.id)
        response = self.redirect(path_with_flash(path, self.request, {"user.impersonation_ended": ""}))
        cookie = Cookie(CookieKind.SESSION, account.session.id)
        response.headerlist.extend(request_cookie_headers(self.request, (cookie,)))
        return response


def includeme(config: Configurator) -> None:
    config.registry.pages.load_impersonation_banner = load_banner
    config.add_page(
        END_IMPERSONATION_ROUTE,
        END_PATH,
        EndImpersonationPage,
        permission=Page.SIGNED_IN_PERMISSION,
        authenticate="session",
    )
