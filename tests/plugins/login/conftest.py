"""Fixtures of sign-in tests: a user, a browser and an application."""

import re
from typing import Any

import pytest

from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World


class LoginUser:
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
    """Open an authorization request; returns the request."""
    authorization = party.new_request(**parameters)
    browser.open(authorization.url, initiator=party.origin)
    return authorization


def token_of(browser: Browser) -> str:
    """The CSRF token of the current form."""
    return str(browser.find_form("page-form")["csrf_token"].value)


def normal(answer: Any, *names: str) -> str:
    """Status, headers and body without values that differ in every response."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("Content-Length", "X-Request-ID")}
    text = f"{answer.status} {sorted(headers.items())} {answer.text}"
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = re.sub(r'name="csrf_token" value="[^"]*"', "TOKEN", text)
    text = re.sub(r'name="ticket" value="[^"]*"', "TICKET", text)
    text = re.sub(r"(challenge&#34;: &#34;)[\w-]+", "CHALLENGE", text)
    for name in names:
        text = text.replace(name, "NAME")
    return text
