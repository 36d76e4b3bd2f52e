"""One-time links, one file per kind. Opening a link does not redeem it: mail scanners open links, too."""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.messages import gettext_lazy
from identity.pages.error_pages import LOGIN_PATH, render_error_page
from identity.pages.page import Page
from identity.pages.rate_limited import PASSWORD_RESET_PATH
from identity.pages.rendering import ACCOUNT_PATH
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
from identity.services.one_time_links import InvalidOneTimeLink

# Names before codes: the first matching route wins.
_PAGES: dict[str, tuple[str, type[Page]]] = {
    "password.reset": (PASSWORD_RESET_PATH, RequestPasswordResetPage),
    "password.reset.sent": (f"{PASSWORD_RESET_PATH}/sent", PasswordResetSentPage),
    "password.reset.link": (f"{PASSWORD_RESET_PATH}/{{code}}", ResetPasswordPage),
    "password.changed": ("/password/changed", PasswordResetDonePage),
    "account.leaving": (DELETION_REQUESTED_PATH, DeletionRequestedPage),
    "email.confirmed": ("/email/confirmed", EmailVerifiedPage),
    "email.link": ("/email/{code}", VerifyEmailPage),
    "register.link": ("/register/{code}", CompleteRegistrationPage),
}

#: Where users request another link, by route.
_NEW_LINK_PATHS = {
    "password.reset.link": PASSWORD_RESET_PATH,
    "email.link": f"{ACCOUNT_PATH}/profile",
    "register.link": LOGIN_PATH,
}


def invalid_link_view(error: InvalidOneTimeLink, request: Request) -> Response:
    """410: used, expired or never valid; the page does not say which."""
    route = getattr(request.matched_route, "name", "")
    return render_error_page(
        request,
        410,
        gettext_lazy("This link does not work any more"),
        [gettext_lazy("This link was used or is too old. Ask for a new one.")],
        action=(gettext_lazy("Ask for a new link"), _NEW_LINK_PATHS.get(route, ACCOUNT_PATH)),
    )


def add_one_time_link_pages(config: Configurator) -> None:
    for name, (path, page) in _PAGES.items():
        config.add_page(name, path, page, permission=NO_PERMISSION_REQUIRED)
    config.add_exception_view(invalid_link_view, context=InvalidOneTimeLink, for_people=True)
