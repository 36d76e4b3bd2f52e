"""Fixtures of upstream tests: a service, a fake provider and an application."""

from dataclasses import dataclass
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.upstream_providers import UpstreamProvider
from identity.key_sets import KeySetCache
from identity.plugins.upstream.http_client import ProviderHttpClient
from identity.plugins.upstream.provider_metadata import ProviderMetadataCache
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.relying_party import SentAuthorizationRequest as Request
from identity.testing.world import World
from tests.plugins.upstream.fake_provider import CLIENT_ID, ISSUER, SECRET, FakeProvider


@dataclass
class UpstreamScenario:
    """An organization with an application and a provider, and a browser without sessions."""

    world: World
    fake_provider: FakeProvider
    organization: Organization
    provider: UpstreamProvider
    party: RelyingParty
    browser: Browser

    @property
    def button(self) -> str:
        return f"Sign in with {self.provider.name}"

    def ask(self, browser: Browser | None = None, **parameters: str) -> Request:
        """Open an authorization request of the application."""
        return self.party.open_request(browser or self.browser, scope="openid profile email", **parameters)

    def go(self, browser: Browser | None = None) -> str:
        """Choose the provider; returns its authorization URL."""
        browser = browser or self.browser
        browser.click(self.button)
        assert browser.external_redirect is not None, browser.page
        return browser.external_redirect

    def go_straight(self) -> None:
        """Confirm the redirect to the provider."""
        assert self.browser.sign_in_step == "upstream", self.browser.page
        self.browser.submit(button=("decision", "continue"))

    def back(self, url: str, browser: Browser | None = None) -> Any:
        """Return from the provider."""
        return (browser or self.browser).open(url, initiator=self.fake_provider.issuer)

    def sign_in(self, **changed: str | None) -> Any:
        """The whole sign-in up to the response for the application."""
        return self.back(self.fake_provider.approve(self.go(), **changed))

    def change(self, **members: Any) -> None:
        from identity.services.commands.upstream_providers import ChangeUpstreamProvider

        self.provider = self.world.operator_services.upstream_providers.change(
            self.provider.id, ChangeUpstreamProvider.build(**members)
        )


def install_fake_provider(world: World) -> FakeProvider:
    """The provider that this world's requests reach."""
    fake_provider = FakeProvider(world.clock)
    desk = world.app.registry.upstream
    desk._http_client, desk.known = ProviderHttpClient(fake_provider), ProviderMetadataCache(KeySetCache())
    return fake_provider


def make_scenario(world: World, fake_provider: FakeProvider) -> UpstreamScenario:
    organization = world.make_organization()
    provider = world.make_upstream_provider(
        organization, issuer=ISSUER, client_id=CLIENT_ID, client_secret=SECRET, create_accounts=True
    )
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    return UpstreamScenario(world, fake_provider, organization, provider, party, Browser(world))


@pytest.fixture
def fake_provider(world: World) -> FakeProvider:
    return install_fake_provider(world)


@pytest.fixture
def scene(world: World, fake_provider: FakeProvider) -> UpstreamScenario:
    return make_scenario(world, fake_provider)
