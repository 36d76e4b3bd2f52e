"""Email codes: sent when the page opens, bound to the sign-in, single use, only the latest is valid."""

import json
import re

import pytest

from identity.services.commands.users import ChangeProfile
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.login.conftest import LoginUser, opened

ENROL = "/login?target=/account/security&enrol=email_code"
WRONG = "This code is wrong or too old. Check the latest mail, or have another code sent."
SETTINGS = {"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"}


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world(**SETTINGS)


@pytest.fixture
def ada(world: World) -> LoginUser:
    person = LoginUser(world)
    has_address(world, person, "ada@navy.example")
    return person


def has_address(world: World, person: LoginUser, address: str, *, proved: bool = True) -> None:
    with world.transaction_services() as services:
        if proved:
            link = services.users.issue_email_link(person.user.id, address)
            services.users.verify_email(link.rsplit("/", 1)[1], person.user.id)
        else:
            services.users.change_profile(person.user.id, ChangeProfile(email=address))


def codes(world: World) -> list[tuple[str, str]]:
    """Recipients and their codes, oldest first."""
    with world.read_only_services() as services:
        queued = services.storage.outbox.list_pending("mail", world.clock(), 100)
        mails = [json.loads(services.outbox.unseal(message)) for message in queued]
    found = [(mail["to"], re.search(r"^(\d{6})$", mail.get("text", ""), re.MULTILINE)) for mail in mails]
    return [(to, code[1]) for to, code in found if code is not None]


@pytest.mark.thorough
def test_email_code_is_enrolled_and_proved(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    browser.open(ENROL)
    check_page(browser.page, 200, "Set up codes by email")
    assert "We have sent a code to <strong>a…@navy.example</strong>. It works for 10 minutes." in browser.page.text
    ((to, code),) = codes(world)
    assert to == "ada@navy.example"
    browser.submit({"code": code})
    assert browser.path == "/account/security"
    (enrolment,) = world.operator_services.factors.list_enrolments(ada.user.id)
    assert (enrolment.factor, dict(enrolment.value)) == ("email_code", {})
    other = Browser(world)
    auth_request = opened(other, party)
    other.sign_in(ada.login_name)
    check_page(other.page, 200, "Enter the code from your mail")
    assert (other.sign_in_step, len(codes(world))) == ("email_code", 2)
    tokens = party.obtain_tokens(other.submit({"code": codes(world)[-1][1]}), auth_request)
    assert tokens.claims["amr"] == ["pwd", "otp", "mfa"]


def set_up(world: World, person: LoginUser) -> None:
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.user.id)
        assert subject is not None
        services.factors.enrol(subject, "email_code", {}, name="")


def signing_in(world: World, party: RelyingParty, person: LoginUser) -> Browser:
    browser = Browser(world)
    opened(browser, party)
    browser.sign_in(person.login_name)
    assert browser.sign_in_step == "email_code"
    return browser


def test_reloading_sends_no_second_email_code(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    browser = signing_in(world, party, ada)
    for _ in range(3):
        browser.reload()
    browser.submit({"code": "12345"})
    assert len(codes(world)) == 1


@pytest.mark.thorough
def test_only_latest_email_code_is_accepted(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    browser = signing_in(world, party, ada)
    browser.submit(button=("again", "yes"))
    assert "We have sent another code. Only the last one works." in browser.page.text
    (_, first), (_, second) = codes(world)
    if first != second:
        browser.submit({"code": first})
        assert browser.page.status_int == 422
        assert WRONG in browser.page.text
    browser.submit({"code": second})
    assert browser.external_redirect is not None


def test_email_code_is_bound_to_its_sign_in(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    browser, other = signing_in(world, party, ada), signing_in(world, party, ada)
    (_, first), (_, second) = codes(world)
    if first == second:
        return
    browser.submit({"code": second})
    assert browser.page.status_int == 422
    other.submit({"code": second})
    assert other.external_redirect is not None
    browser.submit({"code": first})
    assert browser.external_redirect is not None


def test_email_code_expires_after_ten_minutes(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    browser = signing_in(world, party, ada)
    ((_, code),) = codes(world)
    world.clock.advance(minutes=10)
    browser.submit({"code": code})
    assert browser.page.status_int == 422
    assert "There is no valid code for <strong>a…@navy.example</strong>." in browser.page.text


def test_email_code_for_former_address_is_refused(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    browser = signing_in(world, party, ada)
    ((_, code),) = codes(world)
    has_address(world, ada, "ada@new.example")
    browser.submit({"code": code})
    assert browser.page.status_int == 422
    browser.submit(button=("again", "yes"))
    assert codes(world)[-1][0] == "ada@new.example"


@pytest.mark.thorough
def test_email_code_requires_verified_address(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    has_address(world, ada, "ada@new.example", proved=False)
    browser = signing_in(world, party, ada)
    check_page(browser.page, 200, "No code can be sent")
    assert codes(world) == []
    assert not browser.session_cookies


def test_email_code_is_not_offered_without_verified_address(world: World, browser: Browser) -> None:
    bert = LoginUser(world)
    browser.start_session(bert.user)
    browser.open(ENROL)
    assert browser.path == "/account/security"


@pytest.mark.thorough
def test_email_codes_are_limited_to_ten_an_hour(world: World, party: RelyingParty, ada: LoginUser) -> None:
    set_up(world, ada)
    browser = signing_in(world, party, ada)
    for _ in range(9):
        browser.submit(button=("again", "yes"))
        assert browser.page.status_int == 200
    browser.submit(button=("again", "yes"))
    assert browser.page.status_int == 429
    assert "We have sent several codes to this address already." in browser.page.text
    assert len(codes(world)) == 10
    browser.submit({"code": codes(world)[-1][1]})
    assert browser.external_redirect is not None, "the last one still works"
