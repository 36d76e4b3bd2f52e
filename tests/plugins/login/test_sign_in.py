"""Sign-in pages: texts and statuses (pages §4), and what they must not disclose."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from identity.password_hashing import PasswordHasher, ServerBusy
from identity.provider.context import Context
from identity.provider.interaction import Interaction, SignIn
from identity.testing.browser import PASSWORD, Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.login.conftest import LoginUser, normal, opened, token_of

WRONG = "The login name or the password is wrong. Check both and try again."


# --- successful sign-ins ----------------------------------------------------------------------------------------------


def test_password_sign_in(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    auth_request = opened(browser, party, scope="openid profile email offline_access")
    tree = check_page(browser.page, 200, "Sign in")
    assert len(browser.page.body) <= 8 * 1024
    assert tree.findtext(".//title") == "Sign in – Invoices – Identity"
    assert "to continue to <strong>Invoices</strong>" in browser.page.text
    assert "After signing in you return to app.example." in browser.page.text
    field = tree.find(".//input[@id='field-login_name']").attrib
    assert (field["autocomplete"], field["autocapitalize"], field["spellcheck"]) == (
        "username webauthn",
        "none",
        "false",
    )
    browser.submit({"login_name": ada.login_name}, form="page-form")
    assert browser.sign_in_step == "password"
    tree = check_page(browser.page, 200, "Enter your password")
    assert ada.login_name in browser.page.text
    assert "Invoices receives your name and profile, your email address." in browser.page.text
    assert "Invoices stays connected until you disconnect it on your account page." in browser.page.text
    hidden = tree.find(".//input[@name='login_name']").attrib
    assert (hidden["autocomplete"], hidden["value"], hidden["tabindex"]) == ("username", ada.login_name, "-1")
    assert tree.find(".//input[@id='field-password']").attrib["autocomplete"] == "current-password"
    answer = browser.submit({"password": PASSWORD}, form="page-form")
    tokens = party.obtain_tokens(answer, auth_request)
    assert tokens.claims["sub"] == ada.user.id
    assert len(browser.session_cookies) == 1


def test_login_hint_prefills_login_name(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    opened(browser, party, login_hint=ada.login_name)
    assert browser.find_form("page-form")["login_name"].value == ada.login_name
    browser.submit(form="page-form")
    browser.click("Not you?")
    assert browser.find_form("page-form")["login_name"].value == ada.login_name


@pytest.mark.parametrize("parameters", [{"prompt": "login"}, {"max_age": 0}])
def test_prompt_login_requires_password(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, parameters: dict[str, Any]
) -> None:
    browser.start_session(ada.user)
    world.clock.advance(minutes=5)
    auth_request = opened(browser, party, **parameters)
    assert browser.sign_in_step == "password"
    assert "<strong>Invoices</strong> asks you to enter your password again." in browser.page.text
    tokens = party.obtain_tokens(browser.submit({"password": PASSWORD}, form="page-form"), auth_request)
    assert tokens.claims["auth_time"] == world.clock.seconds


def test_sign_ins_in_two_tabs_are_independent(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    tab, other = browser, browser.tab()
    first, second = opened(tab, party), opened(other, party)
    tab.submit({"login_name": ada.login_name}, form="page-form")
    party.obtain_tokens(other.sign_in(ada.login_name, PASSWORD), second)
    party.obtain_tokens(tab.submit({"password": PASSWORD}, form="page-form"), first)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_empty_fields_show_errors(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    opened(browser, party)
    browser.submit({"login_name": "  "}, form="page-form")
    check_page(browser.page, 422, "Sign in")
    assert browser.page.html.get_text().count("Enter your login name or email address.") == 1, "at its field alone"
    assert browser.page.html.select_one("#field-login_name").has_attr("autofocus")
    browser.submit({"login_name": ada.login_name}, form="page-form")
    browser.submit({"password": ""}, form="page-form")
    check_page(browser.page, 422, "Enter your password")
    assert "Enter your password." in browser.page.text


def test_sign_in_does_not_disclose_accounts(world: World, party: RelyingParty, ada: LoginUser) -> None:
    """Security 10.4: page, status, headers and cookies are the same for unknown, deactivated and service users and
    for wrong passwords.
    """
    grace, robot = LoginUser(world), world.make_service_user_program()
    with world.transaction_services() as services:
        services.storage.users.update(replace(grace.user, active=False, version=grace.user.version + 1))
    names = [ada.login_name, "nobody@nowhere.example", grace.login_name]
    names.append(f"{robot.user.user_name}@{robot.organization.primary_domain}")
    answers = set()
    for name in names:
        browser = Browser(world)
        opened(browser, party, login_hint="")
        browser.submit({"login_name": name}, form="page-form")
        password = PASSWORD if name == grace.login_name else "wrong and unique"
        answer = browser.submit({"password": password}, form="page-form")
        check_page(answer, 422, "Enter your password")
        assert WRONG in answer.text
        assert password not in answer.text
        answers.add(normal(answer, name))
    assert len(answers) == 1


def test_unknown_names_are_rate_limited_alike(world: World, party: RelyingParty, ada: LoginUser) -> None:
    answers = set()
    for name in (ada.login_name, "nobody-at-all@nowhere.example"):
        browser = Browser(world)
        opened(browser, party)
        browser.submit({"login_name": name}, form="page-form")
        for _ in range(5):
            assert browser.submit({"password": "wrong"}, form="page-form").status_int == 422
        answer = browser.submit({"password": PASSWORD}, form="page-form")
        check_page(answer, 429, "Enter your password")
        assert answer.headers["Retry-After"] == "1"
        assert "Too many attempts. Wait 1 second, then try again." in answer.text
        assert '<a href="/password/reset">You can also choose a new password.</a>' in answer.text
        answers.add(normal(answer, name))
    assert len(answers) == 1
    world.clock.advance(2)


def test_busy_server_shows_retry_message(
    browser: Browser, party: RelyingParty, ada: LoginUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise ServerBusy

    monkeypatch.setattr(PasswordHasher, "verify", busy)
    auth_request = opened(browser, party)
    browser.submit({"login_name": ada.login_name}, form="page-form")
    answer = browser.submit({"password": PASSWORD}, form="page-form")
    check_page(answer, 503, "Enter your password")
    assert "We are busy just now. Wait 5 seconds, then send the page again." in answer.text
    assert answer.headers["Retry-After"] == "5"
    monkeypatch.undo()
    party.obtain_tokens(browser.submit({"password": PASSWORD}, form="page-form"), auth_request)


def test_stale_sign_in_form_keeps_input(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    opened(browser, party)
    browser.submit({"login_name": ada.login_name, "csrf_token": "old"}, form="page-form")
    assert browser.page.status_int == 422
    assert "This page was open for too long." in browser.page.text
    assert browser.find_form("page-form")["login_name"].value == ada.login_name
    browser.submit(form="page-form")
    assert browser.sign_in_step == "password"


def test_required_organization_restricts_accounts(world: World, browser: Browser, party: RelyingParty) -> None:
    acme = world.make_organization()
    ada, grace = LoginUser(world, acme), LoginUser(world)
    auth_request = opened(browser, party, scope=f"openid urn:service:iam:org:id:{acme.id}")
    assert f"You need an account of {acme.name}." in browser.page.text
    answer = browser.sign_in(grace.login_name, PASSWORD)
    check_page(answer, 422, "Enter your password")
    assert f"Invoices needs an account of {acme.name}." in answer.text
    assert not browser.session_cookies
    browser.click("Use another account.")
    browser.submit({"login_name": ada.login_name}, form="page-form")
    party.obtain_tokens(browser.submit({"password": PASSWORD}, form="page-form"), auth_request)


# --- account chooser --------------------------------------------------------------------------------------------------


@pytest.fixture
def grace(world: World) -> LoginUser:
    return LoginUser(world)


def test_several_sessions_show_account_chooser(
    browser: Browser, party: RelyingParty, ada: LoginUser, grace: LoginUser
) -> None:
    browser.start_session(ada.user)
    browser.start_session(grace.user)
    auth_request = opened(browser, party)
    assert browser.sign_in_step == "accounts"
    check_page(browser.page, 200, "Choose an account")
    assert party.obtain_tokens(browser.select_account(ada.login_name), auth_request).claims["sub"] == ada.user.id


def test_account_chooser_offers_another_account(
    browser: Browser, party: RelyingParty, ada: LoginUser, grace: LoginUser
) -> None:
    browser.start_session(ada.user)
    auth_request = opened(browser, party, prompt="select_account")
    browser.select_account("Use another account")
    assert browser.sign_in_step == ""
    assert browser.find_form("page-form")["login_name"].value == ""
    answer = browser.sign_in(grace.login_name, PASSWORD)
    assert party.obtain_tokens(answer, auth_request).claims["sub"] == grace.user.id
    assert len(browser.session_cookies) == 2


def test_signed_out_account_requires_password(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser
) -> None:
    browser.start_session(ada.user)
    world.clock.advance(hours=13)
    auth_request = opened(browser, party, prompt="select_account")
    assert "Signed out – needs the password" in browser.page.text
    browser.select_account(ada.login_name)
    assert browser.sign_in_step == "password"
    party.obtain_tokens(browser.submit({"password": PASSWORD}, form="page-form"), auth_request)


def test_accounts_of_other_organizations_cannot_be_chosen(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, grace: LoginUser
) -> None:
    browser.start_session(ada.user)
    session = browser.start_session(grace.user)
    opened(browser, party, scope=f"openid urn:service:iam:org:id:{ada.organization.id}", prompt="select_account")
    assert "Used by another organization" in browser.page.text
    button = browser.page.html.find("button", attrs={"value": session.id})
    assert button.has_attr("disabled")
    token = token_of(browser)
    answer = browser.post_form(browser.path, {"csrf_token": token, "session": session.id}, initiator=browser.login_url)
    check_page(answer, 422, "Choose an account")


def test_hinted_account_is_listed_first(
    browser: Browser, party: RelyingParty, ada: LoginUser, grace: LoginUser
) -> None:
    browser.start_session(ada.user)
    browser.start_session(grace.user)
    for user in (ada, grace):
        opened(browser, party, prompt="select_account", login_hint=user.login_name)
        first = browser.page.html.find("button", attrs={"name": "session"})
        assert user.login_name in first.get_text()


def test_account_chooser_refuses_unlisted_sessions(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    opened(browser, party, prompt="select_account")
    token, path = token_of(browser), browser.path
    for reference in ("", "unknown", "x' or 1=1"):
        answer = browser.post_form(path, {"csrf_token": token, "session": reference}, initiator=browser.login_url)
        check_page(answer, 422, "Choose an account")
        assert "Choose an account." in answer.text


# --- consent ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["allow", "refuse"])
def test_consent_decision(browser: Browser, party: RelyingParty, ada: LoginUser, decision: str) -> None:
    browser.start_session(ada.user)
    auth_request = opened(browser, party, prompt="consent", scope="openid email offline_access")
    assert browser.sign_in_step == "consent"
    check_page(browser.page, 200, "Allow access?")
    assert "Invoices receives your email address." in browser.page.text
    answer = browser.submit(button=("decision", decision), form="page-form")
    if decision == "allow":
        party.obtain_tokens(answer, auth_request)
    else:
        party.check_error_response(answer, auth_request, "access_denied")


def test_consent_requires_authentication(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    auth_request = opened(browser, party, prompt="consent")
    token = token_of(browser)
    browser.post_form(
        f"{browser.path}/consent", {"csrf_token": token, "decision": "allow"}, initiator=browser.login_url
    )
    browser.sign_in(ada.login_name, PASSWORD)
    assert browser.sign_in_step == "consent"
    party.obtain_tokens(browser.submit(button=("decision", "allow"), form="page-form"), auth_request)


class LoginClient(Interaction):
    """A plugin's second step after the password."""

    name = "door"

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        return sign_in.authenticated_subject is not None and not sign_in.has_completed(self.name)

    def path(self, sign_in: SignIn) -> str:
        return self.name


@pytest.mark.thorough
def test_plugin_step_precedes_password_change(make_world: Callable[..., World]) -> None:
    """A one-time password alone must not be enough to take over the account."""
    world = make_world()
    interactions = {"door": LoginClient(), **world.identity.protocol_registry.interactions}
    world.identity.protocol_registry = replace(world.identity.protocol_registry, interactions=interactions)
    ada = LoginUser(world, password="one time only", must_change=True)
    browser = Browser(world)
    opened(browser, RelyingParty.register(world))
    browser.submit({"login_name": ada.login_name}, form="page-form")
    token = token_of(browser)
    browser.submit({"password": "one time only"}, form="page-form")
    assert browser.sign_in_step == "door"
    root = browser.path.removesuffix("/door")
    browser.open(f"{root}/password/change")
    assert browser.sign_in_step == "door"
    new = "a password of the thief"
    fields = {"csrf_token": token, "new_password": new, "new_password_again": new}
    browser.post_form(f"{root}/password/change", fields, initiator=browser.login_url)
    assert browser.sign_in_step == "door"
    with world.read_only_services() as services:
        stored = services.storage.users.find_password(ada.user.id)
    assert stored is not None
    assert stored.must_change


def test_steps_out_of_order_do_not_advance(browser: Browser, party: RelyingParty) -> None:
    """Security 11.5: empty and reordered posts."""
    opened(browser, party)
    token, root = token_of(browser), browser.path
    for path in ("/password", "/accounts", "/consent", "/password/change"):
        browser.post_form(f"{root}{path}", {"csrf_token": token}, initiator=browser.login_url)
        assert not browser.session_cookies
        browser.open(root)
        check_page(browser.page, 200, "Sign in")


# --- languages --------------------------------------------------------------------------------------------------------


def test_sign_in_keeps_language(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    opened(browser, party)
    answer = browser.submit({"login_name": ada.login_name}, button=("ui_locales", "de"), form="page-form")
    assert answer.status_int == 200
    assert '<html lang="de">' in answer.text
    assert browser.find_form("page-form")["login_name"].value == ada.login_name
    browser.submit(form="page-form")
    assert browser.sign_in_step == "password"
    assert '<html lang="de">' in browser.page.text


def test_ui_locales_selects_language(browser: Browser, party: RelyingParty) -> None:
    opened(browser, party, ui_locales="xx fr-CA de")
    assert '<html lang="fr">' in browser.page.text
