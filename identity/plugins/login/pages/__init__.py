"""One file per page of a sign-in, and the way in and out."""

from pyramid.config import Configurator
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.sign_ins import WaitingSignIn
from identity.pages.page import Page
from identity.plugins.login.pages.accounts import Accounts
from identity.plugins.login.pages.consent import ConsentPage
from identity.plugins.login.pages.entrance import configure as configure_entrance
from identity.plugins.login.pages.factors import Factors, NewFactor
from identity.plugins.login.pages.login_name import LoginNamePage
from identity.plugins.login.pages.new_password import NewPassword
from identity.plugins.login.pages.password import Password
from identity.plugins.login.pages.register import Register, Registered, RegistrationSent
from identity.plugins.login.pages.sign_out import configure as configure_sign_out

_BELOW: dict[str, type[Page]] = {
    "": LoginNamePage,
    "/password": Password,
    "/accounts": Accounts,
    "/register": Register,
    "/register/sent": RegistrationSent,
    "/registered": Registered,
    "/password/change": NewPassword,
    "/factors": Factors,
    "/factors/new": NewFactor,
    "/consent": ConsentPage,
}


def configure(config: Configurator) -> None:
    """The entrance, the pages below ``/login/{request}``, and the way out."""
    configure_entrance(config)
    for path, page in _BELOW.items():
        name = f"login{path.replace('/', '.')}" if path else "login.name"
        config.add_page(
            name, f"/login/{{request}}{path}", page, permission=NO_PERMISSION_REQUIRED, factory=WaitingSignIn
        )
    configure_sign_out(config)
