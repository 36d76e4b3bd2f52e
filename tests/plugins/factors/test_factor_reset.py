"""Managers reset lost factors: only names are shown, the reset is audited, and higher managers are protected."""

from datetime import timedelta

from identity.domain.attempts import MAX_ATTEMPTS
from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.factors.authenticator_app import enrol
from tests.plugins.login.conftest import LoginUser, opened


def manager_of(world: World, person: LoginUser) -> Browser:
    """The browser of a manager in the console."""
    manager = world.make_human_user(person.organization)
    world.assign_manager_role(manager, "ORG_USER_MANAGER")
    console = Browser(world)
    console.start_session(manager)
    return console


def test_factor_reset_in_the_console(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    app = enrol(browser, ada, name="My phone")
    console = manager_of(world, ada)
    console.open(f"/console/users/{ada.user.id}/security")
    section = console.page.html.find(id="second-factors")
    assert "My phone" in section.get_text()
    assert "Authenticator app" in section.get_text()
    assert app.secret not in console.page.text
    console.click("Reset …")
    check_page(console.page, 200, f"Reset the second factors of {ada.user.display_name}?")
    assert "These are removed: My phone." in console.page.text
    console.submit()
    assert "The second factors are reset." in console.page.text
    assert "The person has not set up any." in console.page.text
    (event,) = world.audit_events(event="factor.reset", object_id=ada.user.id)
    assert (event.object_id, dict(event.detail)) == (ada.user.id, {"factors": 1})
    other = Browser(world)
    opened(other, party)
    other.sign_in(ada.login_name)
    assert other.external_redirect is not None


def test_factor_reset_at_the_api(world: World, browser: Browser, ada: LoginUser) -> None:
    enrol(browser, ada, name="My phone")
    robot = world.make_service_user_program(ada.organization)
    world.assign_manager_role(robot.user, "ORG_USER_MANAGER")
    path, token = f"/users/{ada.user.id}/factors", robot.management_token()
    (found,) = world.client.call_management_api(path, token).json["items"]
    assert found.keys() == {"id", "factor", "name", "added_at", "last_used_at"}
    assert (found["factor"], found["name"]) == ("totp", "My phone")
    assert world.client.call_management_api(path, token, "DELETE").status_int == 204
    assert world.client.call_management_api(path, token).json["items"] == []


def test_factor_reset_of_higher_manager_is_denied(world: World, browser: Browser, ada: LoginUser) -> None:
    enrol(browser, ada)
    world.assign_manager_role(ada.user, "ORG_OWNER")
    console = manager_of(world, ada)
    console.open(f"/console/users/{ada.user.id}/factors/reset")
    console.submit()
    assert console.page.status_int == 403
    assert len(world.operator_services.factors.list_enrolments(ada.user.id)) == 1


def test_factor_reset_requires_new_enrolment(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser
) -> None:
    enrol(browser, ada)
    world.operator_services.policies.change(
        ada.organization.id, ChangePolicy.build(second_factor=SecondFactorRule.REQUIRED)
    )
    world.operator_services.users.reset_factors(ada.user.id)
    other = Browser(world)
    opened(other, party)
    other.sign_in(ada.login_name)
    assert other.sign_in_step == "factors/new"


def test_manager_unlocks_locked_factors(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(ada.user.id)
        for _ in range(MAX_ATTEMPTS):
            services.storage.attempts.reserve(
                f"factor:user:{ada.user.id}", reserved_at=services.now, user_id=ada.user.id
            )
            services.now += timedelta(hours=1)
        assert subject is not None
    world.clock.advance(hours=MAX_ATTEMPTS + 1)
    other = Browser(world)
    opened(other, party)
    other.sign_in(ada.login_name)
    other.submit({"code": app.code()})
    assert other.page.status_int == 429
    assert "Too many wrong attempts." in other.page.text
    console = manager_of(world, ada)
    console.open(f"/console/users/{ada.user.id}/security")
    console.click("Unlock …")
    console.submit()
    other.reload()
    other.submit({"code": app.code()})
    assert other.external_redirect is not None
