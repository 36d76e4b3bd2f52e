"""Security 20.8: reauthentication requires a provider with auth_time or a local factor."""

from typing import Any

import pytest

from identity.testing.browser import Browser
from tests.plugins.factors.authenticator_app import app_on
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.test_sign_in_policies import policy


@pytest.fixture
def scene(scene: UpstreamScenario) -> UpstreamScenario:
    """The provider omits auth_time."""
    scene.fake_provider.claims = {"auth_time": None}
    return scene


def signed_in(scene: UpstreamScenario, **parameters: str) -> Any:
    authorization = scene.ask(**parameters)
    return scene.party.obtain_tokens(scene.sign_in(), authorization)


@pytest.mark.thorough
@pytest.mark.parametrize("demand", [{"prompt": "login"}, {"max_age": "0"}, {"max_age": "3600"}])
def test_provider_without_auth_time_fails_reauthentication(scene: UpstreamScenario, demand: dict[str, str]) -> None:
    signed_in(scene)
    for browser in (scene.browser, Browser(scene.world)):
        scene.browser = browser
        scene.ask(**demand)
        before = scene.browser.session_cookies
        page = scene.sign_in()
        assert page.status_int == 403
        assert "does not report when you last signed in there" in page.text
        assert scene.browser.session_cookies == before
        assert scene.browser.external_redirect is None or not scene.browser.external_redirect.startswith(
            scene.party.redirect_uri
        )
    (event, *_) = scene.world.audit_events(event="authentication.refused", object_id=scene.provider.id)
    assert event.reason == "the provider does not say when"


@pytest.mark.parametrize("demand", [{"prompt": "login"}, {"max_age": "0"}])
def test_local_factor_satisfies_reauthentication(scene: UpstreamScenario, demand: dict[str, str]) -> None:
    policy(scene, second_factor="required")
    scene.ask()
    scene.sign_in()
    scene.browser.submit(button=("factor", "totp"))
    app = app_on(scene.browser)
    scene.browser.submit({"code": app.code()})
    policy(scene, second_factor="offered")
    scene.world.clock.advance(seconds=30)
    authorization = scene.ask(**demand)
    scene.sign_in()
    assert scene.browser.sign_in_step == "totp"
    claims = scene.party.obtain_tokens(scene.browser.submit({"code": app.code()}), authorization).claims
    assert "undated" not in claims["amr"]


def test_session_without_auth_time_fails_max_age(scene: UpstreamScenario) -> None:
    signed_in(scene)
    authorization = scene.ask(prompt="none")
    assert scene.party.obtain_tokens(scene.browser.page, authorization)
    authorization = scene.ask(prompt="none", max_age="3600")
    scene.party.check_error_response(scene.browser.page, authorization, "login_required")


def test_account_pages_refuse_sign_in_without_auth_time(scene: UpstreamScenario) -> None:
    signed_in(scene)
    assert not scene.browser.open(f"/account/identities/new/{scene.provider.id}").request.path.startswith("/account")


def test_provider_auth_time_satisfies_reauthentication(scene: UpstreamScenario) -> None:
    scene.fake_provider.claims = {}
    signed_in(scene)
    for demand in ({"prompt": "login"}, {"max_age": "0"}):
        assert signed_in(scene, **demand).claims["auth_time"]
    authorization = scene.ask(prompt="none", max_age="3600")
    assert scene.party.obtain_tokens(scene.browser.page, authorization)


def test_auth_time_in_userinfo_is_ignored(scene: UpstreamScenario) -> None:
    scene.fake_provider.userinfo = {"auth_time": scene.world.clock.seconds}
    signed_in(scene)
    scene.ask(prompt="login")
    assert scene.sign_in().status_int == 403
