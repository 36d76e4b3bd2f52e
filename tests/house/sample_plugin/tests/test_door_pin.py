"""The page of the door comes between the password and the response to the application."""

import pytest
from sample_plugin.page import ATTEMPTS, CODES

from identity.api.entities import HumanUser
from identity.api.services import Principal, RecordNamespace
from identity.api.testing import Browser, RelyingParty, World, WorldFactory, check_page, set_password

CODE = "2580"
RECORD_NAMESPACE = RecordNamespace("sample")


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    """A service with the door enabled."""
    return make_world(**{"identity.plugin.sample.door": "true"})


@pytest.fixture
def party(world: World) -> RelyingParty:
    return RelyingParty.register(world)


@pytest.fixture
def person(world: World) -> HumanUser:
    return world.make_human_user()


def signing_in(world: World, party: RelyingParty, person: HumanUser) -> Browser:
    """A browser in which the user has just entered the right password."""
    browser = Browser(world)
    browser.open(party.new_request().url, initiator=party.origin)
    browser.sign_in(set_password(world, person))
    return browser


@pytest.fixture
def first(world: World, party: RelyingParty, person: HumanUser) -> Browser:
    """The browser of the user's first sign-in."""
    return signing_in(world, party, person)


@pytest.fixture
def browser(world: World, party: RelyingParty, person: HumanUser, first: Browser) -> Browser:
    """A second browser, after the user has chosen a code."""
    first.submit({"code": CODE}, form="page-form")
    return signing_in(world, party, person)


def test_first_sign_in_sets_a_pin(world: World, party: RelyingParty, first: Browser) -> None:
    check_page(first.page, title="Choose a code for the door")
    first.submit({"code": "1"}, form="page-form")
    check_page(first.page, 422)
    first.submit({"code": CODE}, form="page-form")
    assert first.external_redirect is not None
    assert first.external_redirect.startswith(f"{party.redirect_uri}?code=")


def test_pin_is_deleted_with_its_user(world: World, person: HumanUser, browser: Browser) -> None:
    with world.transaction_services() as services:
        assert services.record_service(RECORD_NAMESPACE).find(CODES, person.id) is not None
        services.users.remove(person.id, principal=Principal.OPERATOR)
    with world.read_only_services() as services:
        assert services.record_service(RECORD_NAMESPACE).find(CODES, person.id) is None


def test_only_managers_see_who_has_a_door_pin(
    world: World, party: RelyingParty, person: HumanUser, browser: Browser
) -> None:
    browser.submit({"code": CODE}, form="page-form")
    with world.read_only_services() as services:
        organization = services.organizations.get(person.organization_id)
    address = f"/console/organizations/{organization.id}/doors"
    newcomer = world.make_human_user(organization)
    assert browser.open(address).status_int in (403, 404), "they manage nothing"
    world.assign_manager_role(person, "ORG_USER_MANAGER")
    page = check_page(browser.open(address), title="Door codes")
    rows = [row.get_text(" ", strip=True) for row in page.select("tbody tr")]
    assert len(rows) == 2
    assert [row.endswith("None yet") for row in rows].count(True) == 1
    assert browser.open(f"/console/users/{newcomer.id}").html.find("a", href=address) is not None


def test_right_pin_leads_to_the_application(browser: Browser, party: RelyingParty) -> None:
    assert browser.sign_in_step == "door"
    check_page(browser.page, title="Enter the code of the door")
    assert not browser.session_cookies, "the password alone signs nobody in"
    browser.submit({"code": CODE}, form="page-form")
    assert browser.external_redirect is not None
    assert browser.external_redirect.startswith(f"{party.redirect_uri}?code=")
    assert browser.session_cookies


def test_wrong_code_leads_nowhere_and_is_not_sent_back(browser: Browser) -> None:
    for wrong in ("", "0000"):
        browser.submit({"code": wrong}, form="page-form")
        check_page(browser.page, 422)
        assert browser.sign_in_step == "door"
        assert "value" not in browser.page.html.find(id="field-code").attrs
    assert not browser.session_cookies


def test_wrong_pins_are_rate_limited(browser: Browser) -> None:
    for _ in range(ATTEMPTS):
        browser.submit({"code": "0000"}, form="page-form")
    browser.submit({"code": CODE}, form="page-form")
    check_page(browser.page, 429)
    assert 0 < int(browser.page.headers["Retry-After"]) <= 600
    browser.world.clock.advance(minutes=10)
    browser.submit({"code": CODE}, form="page-form")
    assert browser.external_redirect is not None


def test_page_requires_a_password(world: World, party: RelyingParty) -> None:
    browser = Browser(world)
    browser.open(party.new_request().url, initiator=party.origin)
    browser.open(f"{browser.path}/door")
    assert browser.sign_in_step == "", "back at the login name"


def test_session_is_not_asked_again(browser: Browser, party: RelyingParty) -> None:
    browser.submit({"code": CODE}, form="page-form")
    silent = party.new_request(prompt="none")
    assert party.extract_code(browser.open(silent.url, initiator=party.origin), silent)


def test_page_is_translated_to_german(browser: Browser) -> None:
    browser.submit(button=("ui_locales", "de"), form="page-form")
    check_page(browser.page, title="Türcode eingeben")
    browser.submit({"code": "0000"}, form="page-form")
    assert "Das ist nicht der Code." in browser.page.html.find(id="error-code").get_text()
