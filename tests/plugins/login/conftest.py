"""A person with a password, at a browser, and the application that they sign in to."""

import re
from typing import Any

import pytest

from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World


class LoginUser:
    """Somebody with a password."""

    def __init__(self, world: World, organization: Any = None, *, password: str = PASSWORD, must_change: bool = False):
        self.organization = organization or world.make_organization()
        self.user = world.make_human_user(self.organization)
        self.login_name = set_password(world, self.user, password, must_change=must_change)


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world, name="Invoices")


@pytest.fixture
def ada(world: World) -> LoginUser:
    return LoginUser(world)


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> Any:
    """Open the page that an authorization request leads to; returns the request."""
    authorization = party.new_request(**parameters)
    browser.open(authorization.url, initiator=party.origin)
    return authorization


def token_of(browser: Browser) -> str:
    """What the shown form is known by."""
    return str(browser.find_form("page-form")["csrf_token"].value)


def normal(answer: Any, *names: str) -> str:
    """Status, headers and page without what differs from request to request anyway."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("Content-Length", "X-Request-ID")}
    text = f"{answer.status} {sorted(headers.items())} {answer.text}"
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = re.sub(r'name="csrf_token" value="[^"]*"', "TOKEN", text)
    text = re.sub(r'name="ticket" value="[^"]*"', "TICKET", text)
    text = re.sub(r"(challenge&#34;: &#34;)[\w-]+", "CHALLENGE", text)
    for name in names:
        text = text.replace(name, "NAME")
    return text
