"""A TOTP authenticator app, and helpers that open its pages."""

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp

from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser

ENROL = "/login?target=/account/security&enrol=totp"


@dataclass(frozen=True)
class AuthenticatorApp:
    """The secret and clock of one account in an app."""

    world: World
    secret: str
    label: str = ""
    issuer: str = ""

    def code(self, steps: int = 0) -> str:
        """The current code, or the code ``steps`` later."""
        return pyotp.TOTP(self.secret).at(self.world.clock(), counter_offset=steps)

    def wrong(self) -> str:
        """Six digits that are not valid in the current or an adjacent step."""
        near = {self.code(steps) for steps in (-1, 0, 1)}
        return next(item for item in ("000000", "111111", "222222", "333333") if item not in near)


def app_on(browser: Browser) -> AuthenticatorApp:
    """An app that has scanned the secret on the current page."""
    (address,) = [item["href"] for item in browser.page.html.find_all("a", href=True) if "otpauth:" in item["href"]]
    parts = urlsplit(address)
    query = parse_qs(parts.query)
    return AuthenticatorApp(
        browser.world, query["secret"][0], unquote(parts.path.removeprefix("/")), query["issuer"][0]
    )


def enrol(browser: Browser, person: LoginUser, *, name: str | None = None) -> AuthenticatorApp:
    """Sign in and enrol an app in the account."""
    browser.start_session(person.user)
    browser.open(ENROL)
    assert browser.sign_in_step == "totp/new", browser.page
    app = app_on(browser)
    browser.submit({"code": app.code()} | ({} if name is None else {"name": name}))
    assert browser.path == "/account/security", browser.page
    # The enrolment consumed the current code.
    browser.world.clock.advance(seconds=30)
    return app
