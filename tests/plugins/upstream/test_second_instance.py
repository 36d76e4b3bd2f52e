"""A second instance of this service as the provider, over real HTTP."""

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest

from identity.domain.applications import ApplicationType
from identity.domain.upstream_providers import UpstreamAuthentication
from identity.outgoing import networks_of
from identity.testing.browser import Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import RelyingParty
from identity.testing.serving import loopback_socket, serving
from identity.testing.world import World

# What is between the two instances is the same on every storage.
pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def upstream(make_world: MakeWorld) -> Iterator[World]:
    """The other instance, which answers on loopback."""
    bound = loopback_socket()
    host, port = bound.getsockname()
    settings = {"identity.issuer_url": f"http://{host}:{port}", "identity.development": "true"}
    world = make_world(**settings)
    with serving(world.app, bound):
        yield world


@pytest.fixture
def here(make_world: MakeWorld) -> World:
    """This instance, which may ask on loopback."""
    return make_world(**{"identity.outgoing_networks": "127.0.0.0/8"})


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_people_of_another_instance_sign_in_here_and_out_in_both(here: World, upstream: World, method: str) -> None:
    organization = here.an_organization()
    provider = here.an_upstream_provider(
        organization,
        issuer=upstream.issuer,
        client_id="unknown-yet",
        authentication=UpstreamAuthentication(method),
        create_accounts=True,
        sign_out_there=True,
    )
    registered = upstream.an_application(
        type=ApplicationType.WEB,
        redirect_uris=(f"{here.identity.settings.login_url}{provider.return_path}",),
        post_logout_redirect_uris=(f"{here.identity.settings.login_url}/login/upstream/signed-out",),
        authentication_method=method,
    )
    from identity.services.commands.upstream_providers import ChangeUpstreamProvider

    here.operator.upstream_providers.change(
        provider.id, ChangeUpstreamProvider.of(client_id=registered.client_id, client_secret=registered.secret)
    )
    person = upstream.a_person()
    login_name = give_password(upstream, person)
    party = RelyingParty.of(here, project_id=here.a_project(organization).id)
    browser, there = Browser(here), Browser(upstream)

    asked = party.opened(browser, scope="openid profile email")
    browser.click(f"Sign in with {provider.name}")
    there.open(str(browser.left_for), by=here.identity.settings.login_url)
    there.sign_in(login_name)
    assert str(there.left_for).startswith(f"{here.identity.settings.login_url}{provider.return_path}?")
    tokens = party.tokens(browser.open(str(there.left_for), by=upstream.issuer), asked)

    [event] = here.audit_events(event="linked_identity.added", object_id=tokens.claims["sub"])
    assert event.detail["issuer"] == upstream.issuer
    mine = here.operator.users.get(tokens.claims["sub"])
    assert mine.profile.given_name == person.profile.given_name

    assert there.session_cookies
    browser.open(party.logout_url(tokens.id_token, state="s & t"), by=party.origin)
    assert str(browser.left_for).startswith(f"{upstream.issuer}/oauth/v2/endsession?")
    there.open(str(browser.left_for), by=here.identity.settings.login_url)
    assert not there.session_cookies
    browser.open(str(there.left_for), by=upstream.issuer)
    assert browser.left_for == f"{party.post_logout_redirect_uri}?state=s+%26+t"
    assert not browser.session_cookies


def test_an_instance_on_a_private_address_is_not_asked_without_a_setting(
    make_world: MakeWorld, upstream: World
) -> None:
    here = make_world()
    organization = here.an_organization()
    provider = here.an_upstream_provider(organization, issuer=upstream.issuer)
    party = RelyingParty.of(here, project_id=here.a_project(organization).id)
    browser = Browser(here)
    party.opened(browser)
    assert browser.click(f"Sign in with {provider.name}").status_int == 503
    [event] = here.audit_events(event="authentication.refused", object_id=provider.id)
    assert event.reason == "the provider did not answer: OSError"
    assert urlsplit(upstream.issuer).hostname == "127.0.0.1"


def test_development_asks_an_instance_on_this_machine(make_world: MakeWorld, upstream: World) -> None:
    here = make_world(**{"identity.development": "true"})
    organization = here.an_organization()
    provider = here.an_upstream_provider(organization, issuer=upstream.issuer)
    browser = Browser(here)
    RelyingParty.of(here, project_id=here.a_project(organization).id).opened(browser)
    browser.click(f"Sign in with {provider.name}")
    assert str(browser.left_for).startswith(f"{upstream.issuer}/")


def test_development_reaches_local_networks_but_nothing_link_local(make_world: MakeWorld) -> None:
    reached = {
        development: networks_of(
            make_world(**{"identity.development": development}).identity.settings.reachable_networks
        )
        for development in ("true", "false")
    }
    assert reached["false"] == ()
    for address, allowed in (("127.0.0.1", True), ("192.168.1.9", True), ("fd00::1", True), ("169.254.169.254", False)):
        assert any(ip_address(address) in network for network in reached["true"]) is allowed
