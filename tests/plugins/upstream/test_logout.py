"""Logout at the provider: the local session ends first, and the browser returns to the application once."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from identity.key_sets import KeySetCache
from identity.outbound_http import OutboundResponse
from identity.plugins.upstream.provider_metadata import ProviderMetadataCache
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from tests.plugins.upstream.conftest import UpstreamScenario, install_fake_provider, make_scenario
from tests.plugins.upstream.fake_provider import CLIENT_ID, never
from tests.plugins.upstream.test_sign_in import NAMES

STATE = "where I was & more"


@pytest.fixture
def id_token(scene: UpstreamScenario) -> str:
    """The application's ID token of a user whose provider supports logout."""
    scene.change(sign_out_there=True)
    scene.fake_provider.claims = dict(NAMES)
    authorization = scene.ask()
    return str(scene.party.obtain_tokens(scene.sign_in(), authorization).id_token)


def sign_out(scene: UpstreamScenario, id_token: str | None, browser: Browser | None = None) -> dict[str, str]:
    """Log out by the application; returns the parameters for the provider."""
    browser = browser or scene.browser
    browser.open(scene.party.logout_url(id_token, state=STATE), initiator=scene.party.origin)
    return logout_parameters(scene, browser)


def logout_parameters(scene: UpstreamScenario, browser: Browser) -> dict[str, str]:
    url = str(browser.external_redirect)
    assert url.startswith(f"{scene.fake_provider.issuer}/logout?"), url
    return dict(parse_qsl(urlsplit(url).query))


def returns_to_application(scene: UpstreamScenario, browser: Browser | None = None) -> bool:
    """True if the browser is on its way to the application, with the state."""
    left_for = (browser or scene.browser).external_redirect
    if left_for is None:
        return False
    address, _, query = left_for.partition("?")
    assert address == scene.party.post_logout_redirect_uri
    assert dict(parse_qsl(query)) == {"state": STATE}
    return True


def return_from_provider(scene: UpstreamScenario, state: str, browser: Browser | None = None) -> Any:
    address = "https://id.example.com/login/upstream/signed-out"
    return (browser or scene.browser).open(f"{address}?state={state}", initiator=scene.fake_provider.issuer)


def test_rp_initiated_logout_passes_provider_and_returns(scene: UpstreamScenario, id_token: str) -> None:
    response = sign_out(scene, id_token)
    assert not scene.browser.session_cookies
    assert response["client_id"] == CLIENT_ID
    assert response["post_logout_redirect_uri"] == "https://id.example.com/login/upstream/signed-out"
    assert response["id_token_hint"].count(".") == 2
    assert response["id_token_hint"] != id_token
    assert scene.browser.page.headers["Referrer-Policy"] == "no-referrer"
    assert STATE not in str(scene.browser.external_redirect)
    return_from_provider(scene, response["state"])
    assert returns_to_application(scene)
    return_from_provider(scene, response["state"])
    assert not returns_to_application(scene), "once"
    assert scene.browser.path == "/signed-out"


def test_logout_by_form_post_passes_provider(scene: UpstreamScenario, id_token: str) -> None:
    url, _, query = scene.party.logout_url(id_token, state=STATE).partition("?")
    scene.browser.post_form(url, dict(parse_qsl(query)), initiator=scene.party.origin)
    return_from_provider(scene, logout_parameters(scene, scene.browser)["state"])
    assert returns_to_application(scene)


def test_confirmed_logout_passes_provider_and_returns(scene: UpstreamScenario, id_token: str) -> None:
    scene.browser.open(
        scene.party.logout_url(None, client_id=scene.party.client_id, state=STATE), initiator=scene.party.origin
    )
    scene.browser.submit(form="page-form")
    response = logout_parameters(scene, scene.browser)
    assert not scene.browser.session_cookies
    return_from_provider(scene, response["state"])
    assert returns_to_application(scene)


def test_logout_state_is_bound_to_its_browser(scene: UpstreamScenario, id_token: str) -> None:
    response = sign_out(scene, id_token)
    browser = Browser(scene.world)
    return_from_provider(scene, response["state"], browser)
    assert (browser.external_redirect, browser.path) == (None, "/signed-out")
    browser.open(f"/login/upstream/sign-out/{response['state']}")
    assert (browser.external_redirect, browser.path) == (None, "/signed-out")
    return_from_provider(scene, response["state"])
    assert returns_to_application(scene)


def test_logout_return_is_single_use(scene: UpstreamScenario, id_token: str) -> None:
    response = sign_out(scene, id_token)
    scene.browser.open(f"/login/upstream/sign-out/{response['state']}")
    assert returns_to_application(scene)


@pytest.mark.sampled(12)
@pytest.mark.every_storage
@pytest.mark.parametrize("state", ["", "nothing", "0" * 5000, "%00", "%ff", "a&state=b", "//evil.example"])
def test_unknown_logout_state_does_not_redirect(scene: UpstreamScenario, id_token: str, state: str) -> None:
    sign_out(scene, id_token)
    page = return_from_provider(scene, state)
    assert page.status_int in (200, 400)
    assert scene.browser.external_redirect is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trouble", ["never", "error", "none", "javascript", "plain http", "long"])
def test_failing_provider_does_not_stop_logout(scene: UpstreamScenario, id_token: str, trouble: str) -> None:
    scene.world.app.registry.upstream.known = ProviderMetadataCache(KeySetCache())
    at = "/.well-known/openid-configuration"
    endpoints: dict[str, Any] = {
        "none": "",
        "javascript": "javascript:alert(1)",
        "plain http": "http://login.elsewhere.example/logout",
        "long": "https://login.elsewhere.example/" + "x" * 100_000,
    }
    if trouble in endpoints:
        scene.fake_provider.metadata = {"end_session_endpoint": endpoints[trouble]}
    else:
        scene.fake_provider.answers[at] = OutboundResponse(500, b"oops") if trouble == "error" else never
    scene.browser.open(scene.party.logout_url(id_token, state=STATE), initiator=scene.party.origin)
    assert returns_to_application(scene)
    assert not scene.browser.session_cookies


@pytest.mark.thorough
@pytest.mark.parametrize("change", ["setting", "deactivated", "removed"])
def test_logout_skips_disabled_provider(scene: UpstreamScenario, id_token: str, change: str) -> None:
    if change == "setting":
        scene.change(sign_out_there=False)
    elif change == "deactivated":
        scene.world.operator_services.upstream_providers.deactivate(scene.provider.id)
    else:
        scene.world.operator_services.upstream_providers.remove(scene.provider.id)
    scene.browser.open(scene.party.logout_url(id_token, state=STATE), initiator=scene.party.origin)
    assert returns_to_application(scene)


def test_logout_with_unregistered_uri_ends_nothing(scene: UpstreamScenario, id_token: str) -> None:
    url = scene.party.logout_url(id_token, state=STATE, post_logout_redirect_uri="https://evil.example/")
    assert scene.browser.open(url, initiator=scene.party.origin).status_int == 400
    assert scene.browser.external_redirect is None
    assert scene.browser.session_cookies


def test_logout_uri_removed_meanwhile_is_not_followed(scene: UpstreamScenario, id_token: str) -> None:
    response = sign_out(scene, id_token)
    with scene.world.transaction_services() as services:
        client = services.applications.find_client(scene.party.client_id)
        assert client is not None
        command = ChangeApplication.build(post_logout_redirect_uris=())
        services.applications.change(client.application.id, command, principal=Principal.OPERATOR)
    assert return_from_provider(scene, response["state"]).status_int == 400
    assert scene.browser.external_redirect is None


def test_upstream_logout_keeps_other_accounts_of_the_browser(scene: UpstreamScenario, id_token: str) -> None:
    user = scene.world.make_human_user(scene.organization)
    scene.browser.start_session(user)
    sign_out(scene, id_token)
    assert len(scene.browser.session_cookies) == 1


def test_logout_omits_id_token_hint_that_is_too_long(scene: UpstreamScenario) -> None:
    scene.change(sign_out_there=True)
    scene.fake_provider.claims = {"filler": "x" * 20_000}
    authorization = scene.ask()
    tokens = scene.party.obtain_tokens(scene.sign_in(), authorization)
    assert "id_token_hint" not in sign_out(scene, tokens.id_token)


@pytest.mark.storages("memory")  # the plugins matter, not the storage
def test_own_sign_out_passes_provider_without_the_end_session_plugin(make_world: WorldFactory) -> None:
    plugins = " ".join(name for name in DEFAULT_PLUGINS.split() if name != "end_session")
    world = make_world(**{"identity.plugins": f"memory {plugins}"})
    scene = make_scenario(world, install_fake_provider(world))
    scene.change(sign_out_there=True)
    scene.fake_provider.claims = dict(NAMES)
    scene.ask()
    scene.sign_in()
    scene.browser.open("/sign-out")
    scene.browser.submit(form="page-form")
    response = logout_parameters(scene, scene.browser)
    assert not scene.browser.session_cookies
    return_from_provider(scene, response["state"])
    assert (scene.browser.external_redirect, scene.browser.url) == (None, "https://id.example.com/signed-out")
