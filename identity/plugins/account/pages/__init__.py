"""One file per page of the account."""

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.http.security import SIGNED_IN
from identity.http.sign_ins import WaitingSignIn
from identity.pages.drawing import HOME
from identity.pages.page import Page
from identity.pages.signed_in_page import SWITCH
from identity.plugins.account.pages.account_page import (
    ACTIVITY,
    APPLICATIONS,
    BROWSERS,
    DATA,
    DELETE,
    FACTORS,
    NOT_ME,
    PASSWORD,
    PROFILE,
    SECURITY,
    SESSIONS,
)
from identity.plugins.account.pages.activity import Activity, NotMe
from identity.plugins.account.pages.applications import Applications, Disconnect
from identity.plugins.account.pages.browsers import Browsers
from identity.plugins.account.pages.data import Data
from identity.plugins.account.pages.deletion import Delete, Keep
from identity.plugins.account.pages.factors import Remove, Rename
from identity.plugins.account.pages.password import Password
from identity.plugins.account.pages.profile import ConfirmEmail, Profile
from identity.plugins.account.pages.security import Security
from identity.plugins.account.pages.sessions import Sessions
from identity.plugins.account.pages.switch import Switch


class Home(Page):
    """/account."""

    def show(self) -> Response:
        """On to the first section."""
        return self.redirect(PROFILE)


_PAGES: dict[str, type[Page]] = {
    HOME: Home,
    PROFILE: Profile,
    f"{PROFILE}/email": ConfirmEmail,
    SECURITY: Security,
    PASSWORD: Password,
    f"{FACTORS}/{{factor_id}}/rename": Rename,
    f"{FACTORS}/{{factor_id}}/remove": Remove,
    BROWSERS: Browsers,
    SESSIONS: Sessions,
    APPLICATIONS: Applications,
    f"{APPLICATIONS}/{{client_id}}/disconnect": Disconnect,
    ACTIVITY: Activity,
    NOT_ME: NotMe,
    DATA: Data,
    DELETE: Delete,
    SWITCH: Switch,
}


def configure(config: Configurator) -> None:
    """Each page for whoever is signed in."""
    for path, page in _PAGES.items():
        name = path.strip("/").replace("/{client_id}", "").replace("/{factor_id}", "").replace("/", ".")
        config.add_page(name, path, page, permission=SIGNED_IN, authenticate="session")
    config.add_page(
        "login.keep", "/login/{request}/keep", Keep, permission=NO_PERMISSION_REQUIRED, factory=WaitingSignIn
    )
