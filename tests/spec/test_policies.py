"""Policies: rules of the instance, and stricter ones of organizations; remembered browsers (decisions, Policies)."""

from typing import Any

import pytest

from identity.domain.errors import Invalid
from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import PASSWORD, Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.factors.authenticator_app import AuthenticatorApp, enrol
from tests.plugins.login.conftest import LoginUser
from tests.spec.test_step_up import TWO, UNMET, opened, policy


@pytest.fixture
def world(isolated_world: World) -> World:
    """A world whose instance policy is changed."""
    return isolated_world


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
    return enrol(Browser(world), ada)


@pytest.mark.thorough
def test_remembered_browser_follows_policy(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    policy(world, INSTANCE_OWNER_ID, remember_browser=30)
    policy(world, ada.organization.id, second_factor=SecondFactorRule.REQUIRED, remember_browser=7)
    opened(browser, party)
    browser.sign_in(ada.login_name)
    assert "7 days" in browser.page.text
    browser.submit({"code": app.code(), "remember": True})
    assert len(world.operator_services.remembered_browsers.list_by_user(ada.user.id)) == 1

    def step_after_password(at: Browser, **parameters: Any) -> str | None:
        opened(at, party, prompt="login", **parameters)
        at.sign_in(ada.login_name)
        return at.sign_in_step

    assert step_after_password(browser) is None
    authorization = party.new_request()
    assert party.obtain_tokens(browser.open(authorization.url), authorization).claims["amr"] == ["pwd"], (
        "it is no second factor"
    )
    assert step_after_password(browser, acr_values=TWO) == "totp"
    assert step_after_password(Browser(world)) == "totp"
    world.clock.advance(days=7)
    assert step_after_password(browser) == "totp"
    browser.submit({"code": app.code(), "remember": True})
    assert step_after_password(browser) is None
    policy(world, ada.organization.id, second_factor=SecondFactorRule.REQUIRED, remember_browser=0)
    authorization = opened(browser, party, prompt="none")
    party.check_error_response(browser.page, authorization, "interaction_required")


@pytest.mark.thorough
def test_remembered_browser_is_bound_to_user_and_factors(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    policy(world, INSTANCE_OWNER_ID, remember_browser=30)
    opened(browser, party)
    browser.sign_in(ada.login_name)
    browser.submit({"code": app.code(), "remember": True})
    world.clock.advance(minutes=1)
    bert = LoginUser(world, ada.organization)
    enrol(Browser(world), bert)
    opened(browser, party, prompt="login", login_hint=bert.login_name)
    browser.sign_in(bert.login_name)
    assert browser.sign_in_step == "totp"
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(ada.user.id)
        assert subject is not None
        services.factors.rename(subject, services.factors.list_enrolments(ada.user.id)[0].id, "Phone")
        assert len(services.remembered_browsers.list_by_user(ada.user.id)) == 1
        services.factors.enrol(subject, "totp", {"secret": "x", "last_step": 0})
        services.factors.remove(subject, services.factors.list_enrolments(ada.user.id)[0].id)
        assert services.remembered_browsers.list_by_user(ada.user.id) == ()


def test_second_factor_disabled_by_instance_is_unmet(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    policy(world, INSTANCE_OWNER_ID, second_factor=SecondFactorRule.OFF)
    browser.start_session(ada.user)
    request = opened(browser, party, acr_values=TWO)
    party.check_error_response(browser.page, request, UNMET)


def test_organization_cannot_exceed_instance_policy(world: World, ada: LoginUser) -> None:
    policy(world, INSTANCE_OWNER_ID, second_factor=SecondFactorRule.REQUIRED_FOR_MANAGERS, factors=("password", "totp"))
    organization_id = ada.organization.id
    for rules in (
        {"second_factor": SecondFactorRule.OFFERED},
        {"factors": ("password", "other")},
        {"remember_browser": 1},
    ):
        with pytest.raises(Invalid) as refusal, world.transaction_services() as services:
            services.policies.change(organization_id, ChangePolicy.build(**rules))
        assert refusal.value.fields.keys() == rules.keys()
    policy(world, organization_id, second_factor=SecondFactorRule.REQUIRED, factors=("totp", "password"))
    policy(world, INSTANCE_OWNER_ID, second_factor=SecondFactorRule.OFFERED, factors=("password", "totp"))
    loaded = world.operator_services.policies.organization_policy(organization_id)
    assert (loaded.second_factor, loaded.factors) == (SecondFactorRule.REQUIRED, ("totp", "password")), (
        "the tighter of both"
    )
    policy(world, INSTANCE_OWNER_ID, factors=("password",))
    loaded = world.operator_services.policies.organization_policy(organization_id)
    left = (SecondFactorRule.OFFERED, ("password",))
    assert (loaded.second_factor, loaded.factors) == left, "what nobody could meet is left to the instance"


def test_disallowed_factor_is_refused(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    """Neither for new sign-ins nor for existing sessions; before authentication the policy is not disclosed."""
    inside = Browser(world)
    inside.start_session(ada.user)
    opened(browser, party)
    browser.submit({"login_name": ada.login_name})
    policy(world, ada.organization.id, factors=("passkeys",))
    wrong = browser.submit({"password": "not hers, but long enough"})
    assert "The login name or the password is wrong." in wrong.text
    right = browser.submit({"password": PASSWORD})
    assert (right.status_int, browser.sign_in_step, browser.session_cookies) == (422, "password", frozenset())
    assert f"{ada.organization.name} does not allow signing in with a password." in right.text
    request = opened(inside, party, prompt="none")
    party.check_error_response(inside.page, request, "login_required")
    inside.open("/account/profile")
    assert inside.sign_in_step in ("", "password")


def test_factor_proof_ends_when_factor_is_disallowed(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, app: AuthenticatorApp
) -> None:
    """Between two pages of one sign-in."""
    opened(browser, party)
    browser.sign_in(ada.login_name)
    assert browser.sign_in_step == "totp"
    policy(world, ada.organization.id, factors=("passkeys", "totp"))
    browser.submit({"code": app.code()})
    assert browser.sign_in_step in ("", "password")
    assert not browser.session_cookies
