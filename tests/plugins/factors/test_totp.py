"""Authenticator apps: enrolled in the account or during sign-in, required after the password, codes are single use."""

import pytest

from identity.domain.policies import SecondFactorRule
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.policies import ChangePolicy
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.factors.authenticator_app import ENROL, app_on, enrol
from tests.plugins.login.conftest import LoginUser, opened

WRONG = "This code is wrong or has already been used. Enter the one that your app shows now."


def test_totp_is_enrolled_in_the_account(world: World, browser: Browser, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    browser.open(ENROL)
    tree = check_page(browser.page, 200, "Set up an authenticator app")
    app = app_on(browser)
    assert (app.issuer, app.label) == (ada.organization.name, f"{ada.organization.name}:{ada.login_name}")
    assert app.secret in "".join(tree.find(".//code[@id='setup-key']").itertext()).replace(" ", "")
    assert browser.find_form()["name"].value == "Authenticator app"
    field = tree.find(".//input[@id='field-code']").attrib
    assert (field["autocomplete"], field["inputmode"]) == ("one-time-code", "numeric")
    browser.submit({"code": app.wrong()})
    assert browser.page.status_int == 422
    assert app_on(browser) == app, "it is the same one until it works"
    browser.submit({"code": app.code(), "name": "My phone"})
    assert browser.path == "/account/security"
    (enrolment,) = world.operator_services.factors.list_enrolments(ada.user.id)
    assert (enrolment.factor, enrolment.name) == ("totp", "My phone")
    assert app.secret not in browser.open(ENROL).text


def test_totp_issuer_matches_brand_name(world: World, party: RelyingParty, ada: LoginUser) -> None:
    command = ChangeBranding(display_name="Acme: Müller/Söhne")
    with world.transaction_services() as services:
        services.branding.change(ada.organization, command, principal=Principal.OPERATOR)
    browser = Browser(world)
    app = enrol(browser, ada)
    assert (app.issuer, app.label) == ("Acme Müller/Söhne", f"Acme Müller/Söhne:{ada.login_name}")
    other = Browser(world)
    opened(other, party)
    other.sign_in(ada.login_name)
    assert "shows for Acme: Müller/Söhne." in other.page.html.find(id="hint-code").text
    assert ada.organization.name not in other.page.text


def test_totp_is_required_after_password(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    other = Browser(world)
    auth_request = opened(other, party)
    other.sign_in(ada.login_name)
    assert other.sign_in_step == "totp"
    tree = check_page(other.page, 200, "Enter the code from your app")
    field = tree.find(".//input[@id='field-code']").attrib
    assert (field["autocomplete"], field["inputmode"]) == ("one-time-code", "numeric")
    assert not other.session_cookies
    code = app.code()
    tokens = party.obtain_tokens(other.submit({"code": f" {code[:3]} {code[3:]} "}), auth_request)
    assert tokens.claims["amr"] == ["pwd", "otp", "mfa"]
    assert tokens.claims["acr"] == "urn:service:iam:acr:2"


@pytest.mark.parametrize(
    ("typed", "message"),
    [("", "Enter the six digits that your app shows."), ("12345", WRONG), ("一二三四五六", WRONG), ("1" * 5000, WRONG)],
)
def test_invalid_code_is_refused(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, typed: str, message: str
) -> None:
    enrol(browser, ada)
    other = Browser(world)
    opened(other, party)
    other.sign_in(ada.login_name)
    other.submit({"code": typed})
    assert other.page.status_int == 422
    assert message in other.page.text
    assert other.sign_in_step == "totp"
    assert not other.session_cookies


def signing_in(world: World, party: RelyingParty, person: LoginUser) -> Browser:
    """A new browser at the TOTP page."""
    browser = Browser(world)
    opened(browser, party)
    browser.sign_in(person.login_name)
    assert browser.sign_in_step == "totp"
    return browser


def test_totp_code_is_single_use(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    code = app.code()
    first, second = signing_in(world, party, ada), signing_in(world, party, ada)
    first.submit({"code": code})
    assert first.external_redirect is not None
    second.submit({"code": code})
    assert (second.page.status_int, second.sign_in_step) == (422, "totp")
    assert WRONG in second.page.text
    second.submit({"code": app.code(1)})
    assert second.external_redirect is not None


def test_enrolment_consumes_totp_code(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    world.clock.advance(seconds=-30)
    other = signing_in(world, party, ada)
    other.submit({"code": app.code()})
    assert other.page.status_int == 422


@pytest.mark.parametrize(("seconds", "accepted"), [(-60, False), (-30, True), (30, True), (60, False)])
def test_totp_clock_skew_of_one_step_is_accepted(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, seconds: int, accepted: bool
) -> None:
    app = enrol(browser, ada)
    world.clock.advance(minutes=5)
    other = signing_in(world, party, ada)
    other.submit({"code": app.code(seconds // 30)})
    assert (other.external_redirect is not None) is accepted


def test_totp_page_requires_password(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    other = Browser(world)
    opened(other, party)
    other.submit({"login_name": ada.login_name})
    begun = other.path.removesuffix("/password")
    token = other.find_form()["csrf_token"].value
    for path in ("totp", "totp/new", "factors", "factors/new"):
        other.open(f"{begun}/{path}")
        assert other.sign_in_step == "", path
        other.post_form(
            f"{begun}/{path}", {"code": app.code(), "csrf_token": token, "factor": "totp"}, initiator=other.login_url
        )
        assert other.sign_in_step == "", path
    other.sign_in(ada.login_name)
    assert other.sign_in_step == "totp"
    assert other.open(f"{begun}/totp/new").request.path == f"{begun}/totp"


def test_totp_secret_differs_per_user_of_one_sign_in(world: World, browser: Browser, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    browser.open(ENROL)
    app = app_on(browser)
    bert = LoginUser(world)
    browser.click("Not you?")
    browser.sign_in(bert.login_name)
    assert browser.sign_in_step == "totp/new"
    assert app_on(browser).secret != app.secret


def test_required_totp_is_enrolled_during_sign_in(world: World, party: RelyingParty, ada: LoginUser) -> None:
    world.operator_services.policies.change(
        ada.organization.id, ChangePolicy.build(second_factor=SecondFactorRule.REQUIRED)
    )
    browser = Browser(world)
    auth_request = opened(browser, party)
    browser.sign_in(ada.login_name)
    assert browser.sign_in_step == "factors/new"
    assert "Recovery codes" not in browser.page.text, "they stand in for others"
    assert "Email codes" not in browser.page.text, "there is no proved address"
    browser.submit(button=("factor", "totp"))
    app = app_on(browser)
    browser.submit({"code": app.wrong()})
    assert not browser.session_cookies
    tokens = party.obtain_tokens(browser.submit({"code": app.code()}), auth_request)
    assert tokens.claims["amr"] == ["pwd", "otp", "mfa"]
    assert [event.object_id for event in world.audit_events(event="factor.added")].count(ada.user.id) == 1


def test_each_of_several_apps_has_its_own_replay_window(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser
) -> None:
    first = enrol(browser, ada, name="Phone")
    browser.open(ENROL)
    second = app_on(browser)
    browser.submit({"code": second.code(), "name": "Tablet"})
    assert {item.name for item in world.operator_services.factors.list_enrolments(ada.user.id)} == {"Phone", "Tablet"}
    world.clock.advance(seconds=30)
    for app in (first, second):
        other = signing_in(world, party, ada)
        other.submit({"code": app.code()})
        assert other.external_redirect is not None
    other = signing_in(world, party, ada)
    other.submit({"code": first.code()})
    assert other.page.status_int == 422


def test_totp_secrets_are_sealed(world: World, browser: Browser, ada: LoginUser) -> None:
    app = enrol(browser, ada)
    with world.read_only_services() as services:
        (record,) = services.storage.records.list_for_owner("identity", "factor", user_id=ada.user.id)
        assert app.secret.encode() not in record.sealed
        assert record.value == {}
    assert app.secret not in str(world.audit_events())
