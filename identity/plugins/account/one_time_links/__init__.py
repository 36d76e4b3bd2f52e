"""One-time links, one file per kind. Opening a link does not redeem it: mail scanners open links, too."""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.pages import Page, gettext_lazy, render_error_page
from identity.api.services import InvalidOneTimeLink
from identity.plugins.account.one_time_links.deletion_requested import DeletionRequestedPage
from identity.plugins.account.one_time_links.email_verification import EmailVerifiedPage, VerifyEmailPage
from identity.plugins.account.one_time_links.password_reset import (
    PasswordResetDonePage,
    PasswordResetSentPage,
    RequestPasswordResetPage,
    ResetPasswordPage,
)
from identity.plugins.account.one_time_links.registration_completion import CompleteRegistrationPage
from identity.plugins.account.pages.account_page import DELETION_REQUESTED_PATH

# Names before codes: the first matching route wins.
_PAGES: dict[str, tuple[str, type[Page]]] = {
    "password.reset": (Page.PASSWORD_RESET_PATH, RequestPasswordResetPage),
    "password.reset.sent": (f"{Page.PASSWORD_RESET_PATH}/sent", PasswordResetSentPage),
    "password.reset.link": (f"{Page.PASSWORD_RESET_PATH}/{{code}}", ResetPasswordPage),
    "password.changed": ("/password/changed", PasswordResetDonePage),
    "account.leaving": (DELETION_REQUESTED_PATH, DeletionRequestedPage),
    "email.confirmed": ("/email/confirmed", EmailVerifiedPage),
    "email.link": ("/email/{code}", VerifyEmailPage),
    "register.link": ("/register/{code}", CompleteRegistrationPage),
}

#: Where users request another link, by route.
_NEW_LINK_PATHS = {
    "password.reset.link": Page.PASSWORD_RESET_PATH,
    "email.link": f"{Page.ACCOUNT_PATH}/profile",
    "register.link": Page.LOGIN_PATH,
}


def invalid_link_view(error: InvalidOneTimeLink, request: Request) -> Response:
    """410: used, expired or never valid; the page does not say which."""
    route = getattr(request.matched_route, "name", "")
    return render_error_page(
        request,
        410,
        gettext_lazy("This link no longer works"),
        [gettext_lazy("This link has been used or is too old. Ask for a new one.")],
        action=(gettext_lazy("Ask for a new link"), _NEW_LINK_PATHS.get(route, Page.ACCOUNT_PATH)),
    )


def add_one_time_link_pages(config: Configurator) -> None:
    for name, (path, page) in _PAGES.items():
        config.add_page(name, path, page, permission=NO_PERMISSION_REQUIRED)
    config.add_exception_view(invalid_link_view, context=InvalidOneTimeLink, for_people=True)
