"""A service with a provider elsewhere, and an application at which people sign in."""

from dataclasses import dataclass
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.upstream.asking import Asked
from identity.plugins.upstream.metadata import Known
from identity.testing.browser import Browser
from identity.testing.relying_party import Asked as Request
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.upstream.elsewhere import CLIENT_ID, ISSUER, SECRET, Elsewhere


@dataclass
class Scene:
    """An organization with an application and a provider, and a browser at which nobody is signed in."""

    world: World
    elsewhere: Elsewhere
    organization: Organization
    provider: UpstreamProvider
    party: RelyingParty
    browser: Browser

    @property
    def button(self) -> str:
        return f"Sign in with {self.provider.name}"

    def ask(self, browser: Browser | None = None, **parameters: str) -> Request:
        """The application sends the person to sign in."""
        return self.party.opened(browser or self.browser, scope="openid profile email", **parameters)

    def go(self, browser: Browser | None = None) -> str:
        """They choose the provider; returns where they are sent."""
        browser = browser or self.browser
        browser.click(self.button)
        assert browser.left_for is not None, browser.page
        return browser.left_for

    def go_straight(self) -> None:
        """They are sent there, and go on."""
        assert self.browser.step == "upstream", self.browser.page
        self.browser.submit(press=("decision", "continue"))

    def back(self, url: str, browser: Browser | None = None) -> Any:
        """They come back from there."""
        return (browser or self.browser).open(url, by=self.elsewhere.issuer)

    def sign_in(self, **changed: str | None) -> Any:
        """All of it, but for what the application makes of the answer."""
        return self.back(self.elsewhere.approve(self.go(), **changed))

    def change(self, **members: Any) -> None:
        from identity.services.commands.upstream_providers import ChangeUpstreamProvider

        self.provider = self.world.operator.upstream_providers.change(
            self.provider.id, ChangeUpstreamProvider.of(**members)
        )


@pytest.fixture
def elsewhere(world: World) -> Elsewhere:
    made = Elsewhere(world.clock)
    desk = world.app.registry.upstream
    desk._asked, desk.known = Asked(made), Known()
    return made


@pytest.fixture
def scene(world: World, elsewhere: Elsewhere) -> Scene:
    organization = world.an_organization()
    provider = world.an_upstream_provider(
        organization, issuer=ISSUER, client_id=CLIENT_ID, client_secret=SECRET, create_accounts=True
    )
    party = RelyingParty.of(world, project_id=world.a_project(organization).id)
    return Scene(world, elsewhere, organization, provider, party, Browser(world))
