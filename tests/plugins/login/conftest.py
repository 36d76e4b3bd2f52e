"""A person with a password, at a browser, and the application that they sign in to."""

import re
from typing import Any

import pytest

from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World


class Person:
    """Somebody with a password."""

    def __init__(self, world: World, organization: Any = None, *, password: str = PASSWORD, must_change: bool = False):
        self.organization = organization or world.an_organization()
        self.user = world.a_person(self.organization)
        self.login_name = give_password(world, self.user, password, must_change=must_change)


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.of(world, name="Invoices")


@pytest.fixture
def ada(world: World) -> Person:
    return Person(world)


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> Any:
    """Open the page that an authorization request leads to; returns the request."""
    asked = party.ask(**parameters)
    browser.open(asked.url, by=party.origin)
    return asked


def token_of(browser: Browser) -> str:
    """What the shown form is known by."""
    return str(browser.form("page-form")["csrf_token"].value)


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
