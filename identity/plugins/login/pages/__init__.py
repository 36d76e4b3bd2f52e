"""The pages of a sign-in, one file each, and the start pages."""

from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.pages import Page
from identity.api.sign_in import PendingSignInContext
from identity.plugins.login.pages.account_chooser import AccountChooserPage
from identity.plugins.login.pages.change_password import ForcedPasswordChangePage
from identity.plugins.login.pages.consent import ConsentPage
from identity.plugins.login.pages.factor_chooser import EnrolmentChooserPage, FactorChooserPage
from identity.plugins.login.pages.login_name import LoginNamePage
from identity.plugins.login.pages.login_start import add_start_routes
from identity.plugins.login.pages.password import LoginPasswordPage
from identity.plugins.login.pages.registration import RegistrationDonePage, RegistrationMailSentPage, RegistrationPage

_PAGES: dict[str, type[Page]] = {
    "": LoginNamePage,
    "/password": LoginPasswordPage,
    "/accounts": AccountChooserPage,
    "/register": RegistrationPage,
    "/register/sent": RegistrationMailSentPage,
    "/registered": RegistrationDonePage,
    "/password/change": ForcedPasswordChangePage,
    "/factors": FactorChooserPage,
    "/factors/new": EnrolmentChooserPage,
    "/consent": ConsentPage,
}


def add_login_pages(config: Configurator) -> None:
    add_start_routes(config)
    for path, page in _PAGES.items():
        name = f"login{path.replace('/', '.')}" if path else "login.name"
        config.add_page(
            name, f"/login/{{request}}{path}", page, permission=NO_PERMISSION_REQUIRED, factory=PendingSignInContext
        )
