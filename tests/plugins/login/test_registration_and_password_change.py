"""Registration and required password changes during sign-in."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.services.commands.users import CreateHumanUser
from identity.testing.browser import PASSWORD, Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.login.conftest import LoginUser, normal, opened, token_of

NEW = {
    "user_name": "ada.new",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "email": "ada.new@example.com",
    "password": PASSWORD,
    "password_again": PASSWORD,
}


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


# --- registration -----------------------------------------------------------------------------------------------------


def test_registration_creates_account(world: World, browser: Browser, party: RelyingParty) -> None:
    auth_request = opened(browser, party)
    browser.click("Create an account")
    assert browser.sign_in_step == "register"
    tree = check_page(browser.page, 200, "Create your account")
    fields = [item.attrib for item in tree.iter("input") if item.attrib["type"] != "hidden"]
    assert {field["name"]: (field["type"], field["autocomplete"]) for field in fields} == {
        "user_name": ("text", "username"),
        "given_name": ("text", "given-name"),
        "family_name": ("text", "family-name"),
        "email": ("email", "email"),
        "password": ("password", "new-password"),
        "password_again": ("password", "new-password"),
    }
    browser.submit(NEW, form="page-form")
    assert browser.sign_in_step == "registered"
    check_page(browser.page, 200, "Your account is ready")
    tokens = party.obtain_tokens(browser.submit(form="page-form"), auth_request)
    with world.read_only_services() as services:
        user = services.users.get(tokens.claims["sub"])
    assert (user.user_name, user.profile.email, user.profile.email_verified) == ("ada.new", NEW["email"], False)
    assert len(browser.session_cookies) == 1


def test_prompt_create_with_live_session(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    auth_request = opened(browser, party, prompt="create")
    browser.submit(NEW, form="page-form")
    tokens = party.obtain_tokens(browser.submit(form="page-form"), auth_request)
    assert tokens.claims["sub"] != ada.user.id


def test_invalid_registration_shows_all_errors_and_keeps_input(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, prompt="create")
    typed = {
        "user_name": "a b",
        "given_name": "",
        "family_name": "<Lovelace>",
        "email": "nonsense",
        "password": "short",
        "password_again": "other",
    }
    answer = browser.submit(typed, form="page-form")
    tree = check_page(answer, 422, "Create your account")
    links = [item.attrib["href"] for item in tree.find(".//*[@id='errors']").iter("a")]
    assert links == ["#field-user_name", "#field-given_name", "#field-email", "#field-password"]
    assert "Use at least 15 characters; several words work well." in answer.text
    form = browser.find_form("page-form")
    assert [form[name].value for name in typed] == ["a b", "", "<Lovelace>", "nonsense", "", ""]


def test_registration_asks_for_required_attributes_of_the_person(
    world: World, browser: Browser, organization: Organization
) -> None:
    """Others, which managers fill in or which are not required, are neither on the page nor accepted."""
    editable = {"visible_to": "person", "editable_by": "person"}
    world.make_attribute(organization, "staff_number", type="number", required=True, **editable)
    world.make_attribute(organization, "floor", **editable)
    world.make_attribute(organization, "salary", required=True)
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    auth_request = opened(browser, party, prompt="create")
    names = browser.find_form("page-form").fields
    assert [name for name in names if name and name.startswith("attributes")] == ["attributes.staff_number"]
    answer = browser.submit(NEW | {"attributes.staff_number": "one"}, form="page-form")
    tree = check_page(answer, 422, "Create your account")
    assert tree.find(".//*[@id='error-attributes.staff_number']") is not None
    browser.submit(NEW | {"attributes.staff_number": ""}, form="page-form")
    assert browser.sign_in_step == "register"
    browser.submit(NEW | {"attributes.staff_number": "17"}, form="page-form")
    tokens = party.obtain_tokens(browser.submit(form="page-form"), auth_request)
    with world.read_only_services() as services:
        user = services.users.get(tokens.claims["sub"])
        assert services.attributes.user_values([user])[user.id] == {"staff_number": 17}


def test_registration_refuses_weak_passwords(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, prompt="create")
    name = "correct.horse.battery"
    for changed, field, sentence in (
        ({"password_again": "another one entirely"}, "password_again", "Type the same password twice."),
        ({"password_again": ""}, "password_again", "Type the same password twice."),
        ({"user_name": name, "password": name}, "password", "Do not use your user name."),
    ):
        tree = check_page(browser.submit(NEW | changed, form="page-form"), 422, "Create your account")
        assert sentence in "".join(tree.find(f".//*[@id='error-{field}']").itertext())


def test_registration_accepts_single_password_field(world: World, browser: Browser, party: RelyingParty) -> None:
    auth_request = opened(browser, party, prompt="create")
    fields = {name: value for name, value in NEW.items() if name != "password_again"}
    fields["csrf_token"] = browser.find_form("page-form")["csrf_token"].value
    browser.post_form(browser.path, fields, initiator=browser.login_url)
    party.obtain_tokens(browser.submit(form="page-form"), auth_request)


def test_registration_refuses_taken_user_name(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, prompt="create")
    browser.submit(NEW, form="page-form")
    other = Browser(world)
    opened(other, party, prompt="create")
    answer = other.submit(NEW | {"email": "other@example.com"}, form="page-form")
    check_page(answer, 422, "Create your account")
    assert "Choose another user name; this one cannot be used." in answer.text


def test_closed_registration_is_refused(world: World, browser: Browser) -> None:
    organization = world.make_organization()
    party = RelyingParty.register(world, project_id=world.make_project(organization).id)
    with world.transaction_services() as services:
        closed = replace(organization, registration=False, version=organization.version + 1)
        services.storage.organizations.update(closed)
    opened(browser, party)
    assert "Create an account" not in browser.page.text
    browser.open(f"{browser.path}/register")
    assert browser.page.status_int == 403
    auth_request = opened(browser, party, prompt="create")
    party.check_error_response(browser.page, auth_request, "access_denied")


def test_registration_by_mail_does_not_disclose_accounts(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(**{"identity.smtp.host": "localhost", "identity.smtp.sender": "no-reply@example.com"})
    party = RelyingParty.register(world, name="Invoices")
    with world.transaction_services() as services:
        client = services.applications.find_client(party.client_id)
        known = CreateHumanUser(user_name="grace", given_name="G", family_name="H", email="grace@example.com")
        services.users.create(client.organization.id, known)
    pages = set()
    for address in ("grace@example.com", "new@example.com"):
        browser = Browser(world)
        opened(browser, party, prompt="create")
        answer = browser.submit(NEW | {"email": address}, form="page-form")
        assert browser.sign_in_step == "register/sent"
        check_page(answer, 200, "Check your mail")
        assert "We have sent you a link to finish." in answer.text
        pages.add(normal(answer))
    assert len(pages) == 1
    mails: list[Any] = []
    monkeypatch.setattr(world.identity.mailer, "send", mails.append)
    assert world.identity.senders["mail"].send_due() == 2
    texts = {mail.to: mail.text for mail in mails}
    assert "/register/" in texts["new@example.com"]
    assert "/register/" not in texts["grace@example.com"]
    assert "grace@" in texts["grace@example.com"]
    assert "&" not in texts["new@example.com"]


# --- required password change -----------------------------------------------------------------------------------------


def test_one_time_password_must_be_changed(world: World, browser: Browser, party: RelyingParty) -> None:
    temporary_password = "good for one time only"
    ada = LoginUser(world, password=temporary_password, must_change=True)
    auth_request = opened(browser, party)
    browser.sign_in(ada.login_name, temporary_password)
    assert browser.sign_in_step == "password/change"
    check_page(browser.page, 200, "Choose a new password")
    assert "Your password was set by someone else or is valid only once." in browser.page.text
    assert not browser.session_cookies
    answer = browser.submit({"new_password": "short", "new_password_again": "short"}, form="page-form")
    check_page(answer, 422, "Choose a new password")
    # The manager who set the password still knows it.
    answer = browser.submit(
        {"new_password": temporary_password, "new_password_again": temporary_password}, form="page-form"
    )
    page = check_page(answer, 422, "Choose a new password")
    assert "Choose a password other than the one you were given." in "".join(page.itertext())
    answer = browser.submit({"new_password": PASSWORD, "new_password_again": PASSWORD}, form="page-form")
    party.obtain_tokens(answer, auth_request)


def test_password_change_requires_current_password(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    """Security 11.5."""
    opened(browser, party)
    token = token_of(browser)
    browser.submit({"login_name": ada.login_name}, form="page-form")
    root = browser.path.removesuffix("/password")
    fields = {"csrf_token": token, "new_password": PASSWORD * 2}
    browser.post_form(f"{root}/password/change", fields, initiator=browser.login_url)
    assert browser.sign_in_step == ""
    browser.open(f"{root}/password/change")
    assert browser.sign_in_step == ""
