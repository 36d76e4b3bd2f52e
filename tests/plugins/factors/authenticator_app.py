"""The app on somebody's phone, and the ways to its pages."""

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp

from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser

ENROL = "/login?target=/account/security&enrol=totp"


@dataclass(frozen=True)
class AuthenticatorApp:
    """What a phone keeps of one account."""

    world: World
    secret: str
    label: str = ""
    issuer: str = ""

    def code(self, steps: int = 0) -> str:
        """What it shows now, or so many steps later."""
        return pyotp.TOTP(self.secret).at(self.world.clock(), counter_offset=steps)

    def wrong(self) -> str:
        """Six digits that it shows neither now nor one step before or after."""
        near = {self.code(steps) for steps in (-1, 0, 1)}
        return next(item for item in ("000000", "111111", "222222", "333333") if item not in near)


def app_on(browser: Browser) -> AuthenticatorApp:
    """The app that has taken over what the shown page offers."""
    (address,) = [item["href"] for item in browser.page.html.find_all("a", href=True) if "otpauth:" in item["href"]]
    parts = urlsplit(address)
    query = parse_qs(parts.query)
    return AuthenticatorApp(
        browser.world, query["secret"][0], unquote(parts.path.removeprefix("/")), query["issuer"][0]
    )


def enrol(browser: Browser, person: LoginUser, *, name: str | None = None) -> AuthenticatorApp:
    """Sign in at this browser, and set an app up from the account."""
    browser.start_session(person.user)
    browser.open(ENROL)
    assert browser.sign_in_step == "totp/new", browser.page
    app = app_on(browser)
    browser.submit({"code": app.code()} | ({} if name is None else {"name": name}))
    assert browser.path == "/account/security", browser.page
    # A code works once, so the next one is needed from here on.
    browser.world.clock.advance(seconds=30)
    return app
