"""A second instance of this service as the provider, over real HTTP."""

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest

from identity.domain.applications import ApplicationType
from identity.domain.upstream_providers import UpstreamAuthentication
from identity.outbound_http import OutboundHttpClient
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.http_server import loopback_socket, running_http_server

# The exchange does not depend on the storage.
pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def upstream(make_world: WorldFactory) -> Iterator[World]:
    """The other instance, served on loopback."""
    bound = loopback_socket()
    host, port = bound.getsockname()
    settings = {"identity.issuer_url": f"http://{host}:{port}", "identity.development": "true"}
    world = make_world(**settings)
    with running_http_server(world.app, bound):
        yield world


@pytest.fixture
def local(make_world: WorldFactory) -> World:
    """This instance, with access to loopback."""
    return make_world(**{"identity.outgoing_networks": "127.0.0.0/8"})


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_second_instance_sign_in_and_logout(local: World, upstream: World, method: str) -> None:
    organization = local.make_organization()
    provider = local.make_upstream_provider(
        organization,
        issuer=upstream.issuer,
        client_id="unknown-yet",
        authentication=UpstreamAuthentication(method),
        create_accounts=True,
        sign_out_there=True,
    )
    registered = upstream.make_application(
        type=ApplicationType.WEB,
        redirect_uris=(f"{local.identity.settings.login_url}{provider.callback_path}",),
        post_logout_redirect_uris=(f"{local.identity.settings.login_url}/login/upstream/signed-out",),
        authentication_method=method,
    )
    from identity.services.commands.upstream_providers import ChangeUpstreamProvider

    local.operator_services.upstream_providers.change(
        provider.id, ChangeUpstreamProvider.build(client_id=registered.client_id, client_secret=registered.secret)
    )
    person = upstream.make_human_user()
    login_name = set_password(upstream, person)
    party = RelyingParty.register(local, project_id=local.make_project(organization).id)
    browser, upstream_browser = Browser(local), Browser(upstream)

    authorization = party.open_request(browser, scope="openid profile email")
    browser.click(f"Sign in with {provider.name}")
    upstream_browser.open(str(browser.external_redirect), initiator=local.identity.settings.login_url)
    upstream_browser.sign_in(login_name)
    assert str(upstream_browser.external_redirect).startswith(
        f"{local.identity.settings.login_url}{provider.callback_path}?"
    )
    tokens = party.obtain_tokens(
        browser.open(str(upstream_browser.external_redirect), initiator=upstream.issuer), authorization
    )

    [event] = local.audit_events(event="linked_identity.added", object_id=tokens.claims["sub"])
    assert event.detail["issuer"] == upstream.issuer
    mine = local.operator_services.users.get(tokens.claims["sub"])
    assert mine.profile.given_name == person.profile.given_name

    assert upstream_browser.session_cookies
    browser.open(party.logout_url(tokens.id_token, state="s & t"), initiator=party.origin)
    assert str(browser.external_redirect).startswith(f"{upstream.issuer}/oauth/v2/endsession?")
    upstream_browser.open(str(browser.external_redirect), initiator=local.identity.settings.login_url)
    assert not upstream_browser.session_cookies
    browser.open(str(upstream_browser.external_redirect), initiator=upstream.issuer)
    assert browser.external_redirect == f"{party.post_logout_redirect_uri}?state=s+%26+t"
    assert not browser.session_cookies


def test_private_address_requires_outgoing_networks(make_world: WorldFactory, upstream: World) -> None:
    world = make_world()
    organization = world.make_organization()
    provider = world.make_upstream_provider(organization, issuer=upstream.issuer)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    browser = Browser(world)
    party.open_request(browser)
    assert browser.click(f"Sign in with {provider.name}").status_int == 503
    [event] = world.audit_events(event="authentication.refused", object_id=provider.id)
    assert event.reason == "the provider did not answer: OSError"
    assert urlsplit(upstream.issuer).hostname == "127.0.0.1"


def test_development_allows_loopback_provider(make_world: WorldFactory, upstream: World) -> None:
    world = make_world(**{"identity.development": "true"})
    organization = world.make_organization()
    provider = world.make_upstream_provider(organization, issuer=upstream.issuer)
    browser = Browser(world)
    RelyingParty.register(world, project_id=world.make_project(organization).id).open_request(browser)
    browser.click(f"Sign in with {provider.name}")
    assert str(browser.external_redirect).startswith(f"{upstream.issuer}/")


def test_development_allows_local_but_not_link_local_addresses(make_world: WorldFactory) -> None:
    reached = {
        development: OutboundHttpClient.parse_networks(
            make_world(**{"identity.development": development}).identity.settings.allowed_networks
        )
        for development in ("true", "false")
    }
    assert reached["false"] == ()
    for address, allowed in (("127.0.0.1", True), ("192.168.1.9", True), ("fd00::1", True), ("169.254.169.254", False)):
        assert any(ip_address(address) in network for network in reached["true"]) is allowed
