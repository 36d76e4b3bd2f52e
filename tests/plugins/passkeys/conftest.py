"""Fixtures of passkey tests: a user at a browser with a software authenticator."""

import html
import json
import re
from typing import Any

import pytest

from identity.domain.enrolments import Enrolment
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.world import World
from tests.plugins.passkeys.software_authenticator import SoftwareAuthenticator

ADD = "/login?target=/account/security&enrol=passkeys"


class PasskeyUser:
    """A user with a password, a browser and an authenticator."""

    def __init__(self, world: World, organization: Any = None, **options: Any) -> None:
        self.world = world
        self.organization = organization or world.make_organization()
        self.user = world.make_human_user(self.organization)
        self.login_name = set_password(world, self.user)
        self.browser = Browser(world)
        self.device = SoftwareAuthenticator(**options)

    @property
    def passkeys(self) -> tuple[Enrolment, ...]:
        with self.world.read_only_services() as services:
            return services.factors.list_enrolments(self.user.id, "passkeys")

    @property
    def events(self) -> list[tuple[str, str | None]]:
        """The user's audit events, newest first: event and reason."""
        return [(event.event, event.reason) for event in self.world.audit_events(object_id=self.user.id)]

    def to_add(self) -> dict[str, Any]:
        """Open the page that adds a passkey; returns the creation options."""
        self.browser.open(ADD)
        if self.browser.sign_in_step != "passkeys/new":
            self.browser.sign_in(self.login_name, PASSWORD)
        if self.browser.sign_in_step == "passkeys":
            self.browser.submit({"answer": self.device.get(options_of(self.browser))})
        assert self.browser.sign_in_step == "passkeys/new", self.browser.page
        return options_of(self.browser)

    def add(self, **otherwise: Any) -> Enrolment:
        answer = self.device.create(self.to_add(), **otherwise)
        self.browser.submit({"answer": answer})
        assert self.browser.path == "/account/security", self.browser.page
        return self.passkeys[0]

    def forget_browser(self) -> None:
        """Continue with a new browser."""
        self.browser = Browser(self.world)

    def to_prove(self, party: RelyingParty, **parameters: Any) -> SentAuthorizationRequest:
        """Open an authorization request up to the page of the second factor."""
        authorization = party.new_request(**parameters)
        self.browser.open(authorization.url, initiator=party.origin)
        self.browser.sign_in(self.login_name, PASSWORD)
        assert self.browser.sign_in_step == "passkeys", self.browser.page
        return authorization

    def to_alone(self, party: RelyingParty, **parameters: Any) -> SentAuthorizationRequest:
        """Open an authorization request up to the page for sign-in by passkey alone."""
        authorization = party.new_request(**parameters)
        self.browser.open(authorization.url, initiator=party.origin)
        self.browser.open(f"{self.browser.path.removesuffix('/password')}/passkeys/alone")
        assert self.browser.sign_in_step == "passkeys/alone", self.browser.page
        return authorization

    def answer(self, **otherwise: Any) -> Any:
        """Submit the authenticator's response to the page's options."""
        return self.browser.submit({"answer": self.device.get(options_of(self.browser), **otherwise)})


def options_of(browser: Browser) -> dict[str, Any]:
    """The WebAuthn options of the current page."""
    (found,) = re.findall(r'data-options="([^"]*)"', browser.page.text)
    options: dict[str, Any] = json.loads(html.unescape(found))
    return options


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world, name="Invoices")


@pytest.fixture
def ada(world: World) -> PasskeyUser:
    return PasskeyUser(world)
