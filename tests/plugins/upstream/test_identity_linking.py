"""An unknown upstream identity is linked during sign-in after local authentication."""

from collections.abc import Iterator
from typing import Any

import pyotp
import pytest

from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import PASSWORD, Browser
from identity.testing.world import World
from tests.plugins.factors.test_factor_races import at_once, enrol_factor
from tests.plugins.login.conftest import LoginUser
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.spec.test_step_up import policy

KIM = {"email": "kim@people.example", "email_verified": True}


@pytest.fixture
def kim(scene: UpstreamScenario) -> LoginUser:
    """A local user at a provider that creates no accounts."""
    scene.change(create_accounts=False)
    scene.fake_provider.claims = dict(KIM)
    return LoginUser(scene.world, scene.organization)


@pytest.fixture
def remembering(world: World) -> Iterator[None]:
    """The policy allows remembered browsers."""
    policy(world, INSTANCE_OWNER_ID, remember_browser=30)
    yield
    policy(world, INSTANCE_OWNER_ID, remember_browser=0)


def is_linked(world: World, person: LoginUser) -> int:
    return len(world.audit_events(event="linked_identity.added", object_id=person.user.id))


def open_linking_question(scene: UpstreamScenario, kim: LoginUser, browser: Browser | None = None) -> Any:
    """Sign in up to the linking question; returns the authorization request."""
    browser = browser or scene.browser
    authorization = scene.ask(browser)
    scene.back(scene.fake_provider.approve(scene.go(browser)), browser)
    assert browser.path.endswith("/upstream/unlinked")
    assert KIM["email"] in browser.page
    browser.submit(form="page-form")
    browser.sign_in(kim.login_name)
    return authorization


def test_linking_is_offered_once_and_completes_the_request(scene: UpstreamScenario, kim: LoginUser) -> None:
    auth_request = open_linking_question(scene, kim)
    assert scene.browser.path.endswith("/upstream/link")
    assert kim.login_name in scene.browser.page
    assert scene.provider.name in scene.browser.page
    assert not is_linked(scene.world, kim)
    answer = scene.browser.submit(button=("decision", "link"))
    assert scene.party.obtain_tokens(answer, auth_request).claims["sub"] == kim.user.id
    assert is_linked(scene.world, kim) == 1
    scene.browser = Browser(scene.world)
    auth_request = scene.ask()
    assert scene.party.obtain_tokens(scene.sign_in(), auth_request).claims["sub"] == kim.user.id


def test_declined_linking_signs_in_without_link(scene: UpstreamScenario, kim: LoginUser) -> None:
    auth_request = open_linking_question(scene, kim)
    answer = scene.browser.submit(button=("decision", "leave"))
    assert scene.party.obtain_tokens(answer, auth_request).claims["sub"] == kim.user.id
    assert not is_linked(scene.world, kim)


def test_other_sign_in_method_skips_linking(scene: UpstreamScenario, kim: LoginUser) -> None:
    authorization = scene.ask()
    scene.sign_in()
    scene.browser.click("Choose another method")
    answer = scene.browser.sign_in(kim.login_name)
    assert scene.party.obtain_tokens(answer, authorization).claims["sub"] == kim.user.id
    assert not is_linked(scene.world, kim)


def test_linking_requires_authentication(scene: UpstreamScenario, kim: LoginUser) -> None:
    scene.ask()
    scene.sign_in()
    root = scene.browser.path.removesuffix("/upstream/unlinked")
    scene.browser.open(f"{root}/upstream/link")
    assert scene.browser.path == root
    scene.browser.open(f"{root}/upstream/unlinked")
    scene.browser.submit(form="page-form")
    scene.browser.open(f"{root}/upstream/link")
    assert scene.browser.path == root
    assert not is_linked(scene.world, kim)


def test_existing_session_does_not_suffice_for_linking(scene: UpstreamScenario, kim: LoginUser) -> None:
    user = scene.world.make_human_user(scene.organization)
    scene.ask()
    scene.back(scene.fake_provider.approve(scene.go()))
    scene.browser.start_session(user)
    scene.browser.submit(form="page-form")
    assert scene.browser.sign_in_step == ""
    scene.browser.sign_in(kim.login_name)
    assert kim.login_name in scene.browser.page
    scene.browser.submit(button=("decision", "link"))
    assert is_linked(scene.world, kim) == 1
    assert not scene.world.audit_events(event="linked_identity.added", object_id=user.id)


def test_linking_requires_strongest_factor_on_remembered_browser(
    scene: UpstreamScenario, kim: LoginUser, remembering: None
) -> None:
    secret = pyotp.random_base32()
    enrol_factor(scene.world, kim, "totp", {"secret": secret, "step": 0})
    code = pyotp.TOTP(secret)
    scene.ask(prompt="login")
    scene.browser.sign_in(kim.login_name)
    scene.browser.submit({"code": code.at(scene.world.clock()), "remember": True})
    scene.ask(prompt="login")
    scene.browser.sign_in(kim.login_name)
    assert scene.browser.external_redirect is not None, "the browser is remembered"
    scene.world.clock.advance(seconds=60)
    authorization = scene.ask(prompt="login")
    scene.sign_in()
    scene.browser.submit(form="page-form")
    scene.browser.sign_in(kim.login_name)
    assert scene.browser.sign_in_step == "totp"
    root = scene.browser.path.removesuffix("/totp")
    scene.browser.open(f"{root}/upstream/link")
    assert scene.browser.sign_in_step == "totp"
    scene.browser.submit({"code": code.at(scene.world.clock())})
    assert scene.browser.path.endswith("/upstream/link")
    answer = scene.browser.submit(button=("decision", "link"))
    assert scene.party.obtain_tokens(answer, authorization).claims["sub"] == kim.user.id
    assert is_linked(scene.world, kim) == 1


def test_identity_linked_to_another_user_meanwhile_is_refused(scene: UpstreamScenario, kim: LoginUser) -> None:
    auth_request = open_linking_question(scene, kim)
    user, browser = LoginUser(scene.world, scene.organization), Browser(scene.world)
    open_linking_question(scene, user, browser)
    browser.submit(button=("decision", "link"))
    scene.browser.submit(button=("decision", "link"))
    assert scene.browser.page.status_int == 409
    assert not is_linked(scene.world, kim)
    answer = scene.browser.click("Continue")
    assert scene.party.obtain_tokens(answer, auth_request).claims["sub"] == kim.user.id


def test_named_provider_is_not_used_again_while_linking(scene: UpstreamScenario, kim: LoginUser) -> None:
    authorization = scene.ask(idp=scene.provider.id)
    scene.go_straight()
    scene.back(scene.fake_provider.approve(str(scene.browser.external_redirect)))
    scene.browser.submit(form="page-form")
    scene.browser.sign_in(kim.login_name)
    answer = scene.browser.submit(button=("decision", "link"))
    assert scene.party.obtain_tokens(answer, authorization).claims["sub"] == kim.user.id


def test_linking_is_refused_for_users_of_another_organization(scene: UpstreamScenario, kim: LoginUser) -> None:
    stranger = LoginUser(scene.world)
    auth_request = open_linking_question(scene, stranger)
    assert "cannot be linked" in scene.browser.page
    answer = scene.browser.submit(button=("decision", "leave"))
    assert scene.party.obtain_tokens(answer, auth_request).claims["sub"] == stranger.user.id
    assert not is_linked(scene.world, stranger)


def test_linking_skips_provider_deleted_meanwhile(scene: UpstreamScenario, kim: LoginUser) -> None:
    authorization = scene.ask()
    scene.sign_in()
    scene.browser.submit(form="page-form")
    scene.world.operator_services.upstream_providers.deactivate(scene.provider.id)
    answer = scene.browser.sign_in(kim.login_name)
    assert scene.party.obtain_tokens(answer, authorization).claims["sub"] == kim.user.id


def test_linking_form_of_another_account_is_refused(scene: UpstreamScenario, kim: LoginUser) -> None:
    open_linking_question(scene, kim)
    form = scene.browser.find_form("page-form")
    for name in ("account", "identity"):
        before = form[name].value
        form[name].force_value("0" * len(before))
        scene.browser.submit(button=("decision", "link"))
        assert scene.browser.path.endswith("/upstream/link")
        assert not is_linked(scene.world, kim)
        form = scene.browser.find_form("page-form")


def test_slow_linking_decision_requires_reauthentication(scene: UpstreamScenario, kim: LoginUser) -> None:
    auth_request = open_linking_question(scene, kim)
    scene.world.clock.advance(minutes=11)
    scene.browser.submit(button=("decision", "link"))
    assert scene.browser.sign_in_step == ""
    assert not is_linked(scene.world, kim)
    scene.browser.sign_in(kim.login_name)
    answer = scene.browser.submit(button=("decision", "link"))
    assert scene.party.obtain_tokens(answer, auth_request).claims["sub"] == kim.user.id
    assert is_linked(scene.world, kim) == 1


@pytest.mark.every_storage
def test_linking_in_two_tabs_links_once(scene: UpstreamScenario, kim: LoginUser) -> None:
    open_linking_question(scene, kim)
    tabs = [scene.browser.tab() for _ in range(3)]
    for tab in tabs:
        tab.open(scene.browser.path)
    outcomes = at_once(tabs, lambda tab: tab.submit(button=("decision", "link")))
    assert not [status for status in outcomes if status >= 500], outcomes
    assert is_linked(scene.world, kim) == 1


def test_linking_requires_correct_password(scene: UpstreamScenario, kim: LoginUser) -> None:
    scene.ask()
    scene.sign_in()
    scene.browser.submit(form="page-form")
    scene.browser.sign_in(kim.login_name, PASSWORD + "x")
    assert scene.browser.sign_in_step == "password"
    assert not is_linked(scene.world, kim)
