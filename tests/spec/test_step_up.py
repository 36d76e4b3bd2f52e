"""Step-up authentication (RFC 9470) at the authorization endpoint: acr_values, essential acr and policies.

A user who lacks a factor proves that factor only.
"""

import json
from typing import Any

import pytest

from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.factors.authenticator_app import AuthenticatorApp, enrol
from tests.plugins.login.conftest import LoginUser

ONE_FACTOR, TWO, RESISTANT = (f"urn:service:iam:acr:{level}" for level in ("1", "2", "phr"))
UNMET = "unmet_authentication_requirements"


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world, name="Invoices")


@pytest.fixture
def ada(world: World) -> LoginUser:
    return LoginUser(world)


@pytest.fixture
def app(world: World, ada: LoginUser) -> AuthenticatorApp:
    """Ada has an authenticator app."""
    return enrol(Browser(world), ada)


def wants(acr: str, *, essential: bool = True) -> dict[str, str]:
    """Parameters that request an acr, by acr_values or an essential claim."""
    if not essential:
        return {"acr_values": acr}
    return {"claims": json.dumps({"id_token": {"acr": {"essential": True, "values": acr.split()}}})}


def opened(browser: Browser, party: RelyingParty, **parameters: Any) -> Any:
    authorization = party.new_request(**parameters)
    browser.open(authorization.url, initiator=party.origin)
    return authorization


def policy(world: World, owner: str, **rules: Any) -> None:
    with world.transaction_services() as services:
        services.policies.change(owner, ChangePolicy.build(**rules))


@pytest.mark.parametrize("essential", [True, False])
def test_step_up_requires_missing_factor(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp, essential: bool
) -> None:
    """Without the password; the session keeps its id and gets a new secret."""
    session = browser.start_session(ada.user)
    began = world.clock.seconds
    world.clock.advance(minutes=5)
    plain = party.obtain_tokens(browser.open((authorization := party.new_request()).url), authorization)
    assert (plain.claims["acr"], plain.claims["amr"]) == (ONE_FACTOR, ["pwd"])
    authorization = opened(browser, party, **wants(TWO, essential=essential))
    assert browser.sign_in_step == "totp"
    tokens = party.obtain_tokens(browser.submit({"code": app.code()}), authorization)
    assert (tokens.claims["acr"], tokens.claims["amr"]) == (TWO, ["pwd", "otp", "mfa"])
    assert (tokens.claims["sid"], tokens.claims["auth_time"]) == (session.id, began)
    renewed = world.operator_services.storage.sessions.find(session.id)
    assert renewed is not None
    assert (renewed.digest != session.digest, renewed.ends_at) == (True, session.ends_at)
    # The session now satisfies two factors without a page.
    authorization = party.new_request(prompt="none", **wants(TWO, essential=essential))
    assert party.obtain_tokens(browser.open(authorization.url), authorization).claims["acr"] == TWO
    refreshed = party.refresh(
        party.sign_in_silently(browser, scope="openid offline_access", acr_values=TWO).refresh_token
    )
    assert refreshed.status_int == 200


def test_sign_in_requires_both_factors(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    request = opened(browser, party, acr_values=f"urn:example:other {TWO}")
    browser.sign_in(ada.login_name)
    assert browser.sign_in_step == "totp"
    assert party.obtain_tokens(browser.submit({"code": app.code()}), request).claims["acr"] == TWO


def test_acr_is_returned_as_requested(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    """Two factors satisfy a request for one, and refreshed tokens keep the requested acr."""
    browser.start_session(ada.user)
    request = opened(browser, party, acr_values=TWO)
    browser.submit({"code": app.code()})
    request = party.new_request(scope="openid offline_access", **wants(ONE_FACTOR))
    tokens = party.obtain_tokens(browser.open(request.url), request)
    assert tokens.claims["acr"] == ONE_FACTOR
    answer = party.refresh(tokens.refresh_token).json
    assert party.check_id_token(answer["id_token"])["acr"] == ONE_FACTOR


def test_unknown_acr_is_ignored_unless_essential(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser
) -> None:
    browser.start_session(ada.user)
    authorization = party.new_request(acr_values="urn:mace:incommon:iap:silver")
    assert party.obtain_tokens(browser.open(authorization.url), authorization).claims["acr"] == ONE_FACTOR
    authorization = opened(browser, party, **wants("urn:mace:incommon:iap:silver"))
    party.check_error_response(browser.page, authorization, UNMET)


@pytest.mark.parametrize("essential", [True, False])
def test_step_up_with_prompt_none_is_refused(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp, essential: bool
) -> None:
    browser.start_session(ada.user)
    request = opened(browser, party, prompt="none", **wants(TWO, essential=essential))
    party.check_error_response(browser.page, request, UNMET)


@pytest.mark.parametrize("essential", [True, False])
def test_user_without_second_factor_enrols_or_cancels(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, essential: bool
) -> None:
    browser.start_session(ada.user)
    request = opened(browser, party, **wants(TWO, essential=essential))
    assert browser.sign_in_step == "factors/new"
    assert "Invoices" in browser.page.text
    browser.submit(button=("factor", "none"))
    party.check_error_response(browser.page, request, UNMET)
    opened(browser, party, **wants(TWO, essential=essential))
    browser.submit(button=("factor", "totp"))
    assert browser.sign_in_step == "totp/new"


def test_enrolled_factor_precedes_enrolment(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    """Security 19.5: the password alone does not allow enrolment beside an existing factor."""
    browser.start_session(ada.user)
    opened(browser, party, acr_values=TWO)
    request = browser.path.split("/")[2]
    browser.open(f"/login/{request}/totp/new")
    assert browser.sign_in_step == "totp"
    browser.open(f"/login/{request}/factors/new")
    assert browser.sign_in_step == "totp"
    browser.open("/login?target=/account/security&enrol=totp")
    assert browser.sign_in_step == "totp"
    browser.submit({"code": app.code()})
    assert browser.sign_in_step == "totp/new"


def test_reauthentication_requires_all_factors(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    """max_age and prompt=login apply to every factor that counts."""
    browser.start_session(ada.user)
    opened(browser, party, acr_values=TWO)
    browser.submit({"code": app.code()})
    world.clock.advance(minutes=10)
    for again in ({"prompt": "login"}, {"max_age": "300"}):
        request = opened(browser, party, acr_values=TWO, **again)
        assert browser.sign_in_step == "password"
        browser.sign_in(ada.login_name)
        assert browser.sign_in_step == "totp"
        tokens = party.obtain_tokens(browser.submit({"code": app.code()}), request)
        assert (tokens.claims["acr"], tokens.claims["auth_time"]) == (TWO, world.clock.seconds)
        world.clock.advance(minutes=10)


def test_policy_applies_to_existing_sessions_and_tokens(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    browser.start_session(ada.user)
    tokens = party.sign_in_silently(browser, scope="openid offline_access")
    assert browser.open("/account/profile").status_int == 200
    policy(world, ada.organization.id, second_factor=SecondFactorRule.REQUIRED)
    answer = party.refresh(tokens.refresh_token)
    assert (answer.status_int, answer.json["error"]) == (400, "invalid_grant")
    request = opened(browser, party, prompt="none")
    party.check_error_response(browser.page, request, "interaction_required")
    browser.open("/account/profile")
    assert browser.sign_in_step == "totp", "and the way there leads on"
    browser.submit({"code": app.code()})
    assert browser.path == "/account/profile"
    assert party.refresh(tokens.refresh_token).status_int == 400, "what was issued for one factor stays so"
    assert party.refresh(party.sign_in_silently(browser, scope="openid offline_access").refresh_token).status_int == 200


def test_password_does_not_reset_second_factor_attempts(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    """Otherwise an attacker who knows the password could try a thousand codes, five at a time."""
    tried = 0
    for _ in range(4):
        stranger = Browser(world)
        opened(stranger, party)
        stranger.sign_in(ada.login_name)
        for _ in range(4):
            tried += stranger.submit({"code": app.wrong()}).status_int == 422
    assert tried == 5
    assert stranger.page.status_int == 429
    assert int(stranger.page.headers["Retry-After"]) >= 1
    world.clock.advance(minutes=16)
    stranger.submit({"code": app.code()})
    assert stranger.external_redirect is not None
    opened(stranger, party, prompt="login")
    stranger.sign_in(ada.login_name)
    world.clock.advance(seconds=30)
    assert [stranger.submit({"code": app.wrong()}).status_int for _ in range(5)] == [422] * 5, "from nought again"
