"""Passkeys with virtual authenticators of Chromium."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.enrolments import Enrolment
from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from tests.browser.chromium import MakeProfile
from tests.browser.devtools_authenticator import DevToolsAuthenticator
from tests.browser.example_company import CompanyUser, ExampleCompany
from tests.browser.tab import Tab

ADD = "/login?target=/account/security&enrol=passkeys"
PHR = "urn:service:iam:acr:phr"
BUTTON = "Sign in with a passkey"


def add_passkey(site: ExampleCompany, tab: Tab, person: CompanyUser) -> None:
    """Sign in and add a passkey in the account."""
    tab.open(site.url + ADD)
    site.sign_in(tab, person)
    assert tab.heading == "Add a passkey"
    tab.send()
    assert tab.url == f"{site.url}/account/security", tab.text


def sign_out(site: ExampleCompany, tab: Tab) -> None:
    tab.open(f"{site.url}/sign-out")
    tab.send()


def passkeys(site: ExampleCompany, person: CompanyUser) -> tuple[Enrolment, ...]:
    with site.world.read_only_services() as services:
        return services.factors.list_enrolments(person.user.id, "passkeys")


def test_passkey_is_added_and_signs_in(site: ExampleCompany, tab: Tab) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    (credential,) = device.credentials
    assert (credential["isResidentCredential"], credential["rpId"]) == (True, "localhost")
    (enrolment,) = passkeys(site, anna)
    assert enrolment.name.endswith(" on Linux")
    sign_out(site, tab)
    device.present(False)
    authorization = site.ask(tab, acr_values=PHR)
    device.present(True)
    tab.press(BUTTON)
    claims = site.tokens(tab, authorization).claims
    assert (claims["sub"], claims["acr"], claims["amr"]) == (anna.user.id, PHR, ["swk", "user", "mfa"])


@pytest.mark.thorough
def test_passkey_autofill_at_login_name(site: ExampleCompany, tab: Tab) -> None:
    """The virtual authenticator selects the first passkey at once."""
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    sign_out(site, tab)
    authorization = site.party.new_request()
    with tab.leaving():
        tab.open(authorization.url)
        assert device.credentials
    tab.wait(lambda: tab.url.startswith(authorization.parameters["redirect_uri"]))
    assert site.tokens(tab, authorization).claims["sub"] == anna.user.id


@pytest.mark.thorough
def test_passkey_is_offered_on_password_page(site: ExampleCompany, tab: Tab) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    sign_out(site, tab)
    device.present(False)
    authorization = site.ask(tab)
    tab.send(login_name=anna.login_name)
    device.present(True)
    tab.press(BUTTON)
    assert site.tokens(tab, authorization).claims["sub"] == anna.user.id


@pytest.mark.thorough
def test_security_key_without_pin_is_second_factor(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    DevToolsAuthenticator(
        tab,
        transport="usb",
        hasResidentKey=False,
        hasUserVerification=False,
        isUserVerified=False,
        defaultBackupEligibility=False,
        defaultBackupState=False,
    )
    add_passkey(site, tab, anna)
    assert passkeys(site, anna)[0].name == "Security key"
    sign_out(site, tab)
    authorization = site.ask(tab)
    site.sign_in(tab, anna)
    assert tab.heading == "Confirm with your passkey"
    tab.send()
    claims = site.tokens(tab, authorization).claims
    assert (claims["acr"], claims["amr"]) == (PHR, ["pwd", "hwk", "user", "mfa"])
    assert passkeys(site, anna)[0].last_used_at is not None


@pytest.mark.thorough
def test_policy_requires_passkey_during_sign_in(site: ExampleCompany, tab: Tab) -> None:
    strict = site.world.make_organization()
    with site.world.transaction_services() as services:
        services.policies.change(strict.id, ChangePolicy(second_factor=SecondFactorRule.REQUIRED))
    anna = site.make_user(organization=strict)
    DevToolsAuthenticator(tab)
    authorization = site.ask(tab)
    site.sign_in(tab, anna)
    assert tab.heading == "Set up a second factor"
    tab.press("Passkey")
    assert tab.heading == "Add a passkey"
    tab.send()
    if "/consent" in tab.url:
        tab.send()
    assert site.tokens(tab, authorization).claims["acr"] == PHR


@pytest.mark.thorough
def test_failed_user_verification_shows_message(site: ExampleCompany, tab: Tab) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    sign_out(site, tab)
    device.recognise(False)
    authorization = site.ask(tab)
    before = tab.url
    (button,) = [element for element in tab.all("button") if element.text == BUTTON]
    button.click()
    tab.wait(lambda: "No passkey was used. Try again, or use another method." in tab.text)
    assert tab.url == before
    device.recognise(True)
    with tab.leaving():
        button.click()
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_passkey_is_added_once_per_device(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    tab.open(site.url + ADD)
    assert tab.heading == "Add a passkey"
    tab.find(".button--primary").click()
    tab.wait(lambda: "This device already has a passkey for your account." in tab.text)
    assert len(passkeys(site, anna)) == 1


@pytest.mark.thorough
def test_cloned_passkey_is_refused(site: ExampleCompany, make_profile: MakeProfile) -> None:
    anna, tab = site.make_user(), make_profile().tab()
    device = DevToolsAuthenticator(tab, defaultBackupEligibility=False, defaultBackupState=False)
    add_passkey(site, tab, anna)
    (copied,) = device.credentials
    for _ in range(2):
        sign_out(site, tab)
        device.present(False)
        authorization = site.ask(tab)
        device.present(True)
        tab.press(BUTTON)
        site.tokens(tab, authorization)
    thief = make_profile().tab()
    copy = DevToolsAuthenticator(thief, defaultBackupEligibility=False, defaultBackupState=False)
    copy.present(False)
    copy.add({**copied, "signCount": 0})
    authorization = site.ask(thief)
    copy.present(True)
    thief.press(BUTTON)
    assert (thief.heading, thief.status) == (BUTTON, 422)
    assert "a copy of it seems to exist" in thief.text
    assert [event.event for event in site.world.audit_events(object_id=anna.user.id)].count("factor.suspected") == 1


@pytest.fixture
def run_on_each_page(tab: Tab) -> Iterator[Callable[[str], None]]:
    """Runs a script before those of each page. Later tests reuse the window without it."""
    identifiers: list[str] = []

    def add(source: str) -> None:
        identifiers.append(tab.command("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"])

    yield add
    for identifier in identifiers:
        tab.command("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)


#: A browser that keeps removed passkeys, because nobody tells it.
WITHOUT_SIGNALS = "PublicKeyCredential.signalAllAcceptedCredentials = undefined;"


@pytest.mark.thorough
def test_removed_passkey_is_refused(site: ExampleCompany, tab: Tab, run_on_each_page: Callable[[str], None]) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    run_on_each_page(WITHOUT_SIGNALS)
    add_passkey(site, tab, anna)
    tab.follow("Remove …")
    tab.send()
    assert passkeys(site, anna) == ()
    sign_out(site, tab)
    device.present(False)
    site.ask(tab)
    device.present(True)
    tab.press(BUTTON)
    assert tab.status == 422
    assert "This passkey was not accepted." in tab.text
    device.present(False)
    tab.follow("Use another method")
    assert tab.heading == "Sign in"


@pytest.mark.thorough
def test_expired_passkey_challenge_is_renewed(site: ExampleCompany, tab: Tab) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    sign_out(site, tab)
    device.present(False)
    authorization = site.ask(tab)
    site.world.clock.advance(timedelta(minutes=6).total_seconds())
    device.present(True)
    tab.press(BUTTON)
    assert "This page was open for too long." in tab.text
    tab.send()
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_language_change_sends_no_passkey(site: ExampleCompany, tab: Tab) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    add_passkey(site, tab, anna)
    tab.open(site.url + ADD)
    device.clear()
    tab.press("Deutsch")
    assert tab.find("html").get_attribute("lang") == "de"
    tab.send()
    assert len(passkeys(site, anna)) == 2


SPY = """
for (const method of ['signalUnknownCredential', 'signalAllAcceptedCredentials', 'signalCurrentUserDetails']) {
  PublicKeyCredential[method] = async (details) => {
    const calls = JSON.parse(sessionStorage.getItem('calls') || '[]');
    sessionStorage.setItem('calls', JSON.stringify([...calls, [method, details]]));
  };
}
"""
#: A browser with conditional creation: the virtual authenticator takes the password manager's part.
ABLE = """
PublicKeyCredential.getClientCapabilities = async () => ({ conditionalCreate: true });
const create = navigator.credentials.create.bind(navigator.credentials);
navigator.credentials.create = ({ mediation, ...options }) => {
  sessionStorage.setItem('mediation', mediation);
  return create(options);
};
"""
#: As in browsers without conditional creation.
UNABLE = "PublicKeyCredential.getClientCapabilities = undefined;"


def signals(tab: Tab) -> list[list[Any]]:
    """The signals since the last call, each with its method and details."""
    found: list[list[Any]] = json.loads(tab.run("return sessionStorage.getItem('calls') || '[]'"))
    tab.run("sessionStorage.removeItem('calls')")
    return found


@pytest.mark.thorough
def test_account_signals_passkeys(site: ExampleCompany, tab: Tab, run_on_each_page: Callable[[str], None]) -> None:
    anna, device = site.make_user(), DevToolsAuthenticator(tab)
    run_on_each_page(SPY)
    add_passkey(site, tab, anna)
    (enrolment,) = passkeys(site, anna)
    user = {"rpId": "localhost", "userId": enrolment.value["user_handle"]}
    tab.wait(lambda: tab.run("return sessionStorage.getItem('calls')"))
    accepted, details = signals(tab)
    assert accepted == ["signalAllAcceptedCredentials", {**user, "allAcceptedCredentialIds": [enrolment.value["id"]]}]
    assert details[0] == "signalCurrentUserDetails"
    tab.open(f"{site.url}/account/profile")
    tab.send(display_name="Anna Amsel")
    assert signals(tab)[-1] == [
        "signalCurrentUserDetails",
        {**user, "name": anna.login_name, "displayName": "Anna Amsel"},
    ]
    tab.open(f"{site.url}/account/security")
    tab.follow("Remove …")
    signals(tab)
    tab.send()
    assert signals(tab) == [["signalAllAcceptedCredentials", {**user, "allAcceptedCredentialIds": []}]]
    sign_out(site, tab)
    device.present(False)
    site.ask(tab)
    device.present(True)
    tab.press(BUTTON)
    assert signals(tab) == [["signalUnknownCredential", {"rpId": "localhost", "credentialId": enrolment.value["id"]}]]


@pytest.mark.thorough
@pytest.mark.parametrize("is_able", [True, False])
def test_passkey_is_saved_after_password(
    site: ExampleCompany, tab: Tab, run_on_each_page: Callable[[str], None], is_able: bool
) -> None:
    """Without a question; a browser that cannot goes on by itself."""
    organization = site.world.make_organization()
    with site.world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy(passkey_upgrade=True))
    anna, device = site.make_user(organization=organization), DevToolsAuthenticator(tab)
    run_on_each_page(ABLE if is_able else UNABLE)
    tab.open(f"{site.url}/account/security")
    site.sign_in(tab, anna)
    tab.wait(lambda: tab.url == f"{site.url}/account/security")
    assert len(passkeys(site, anna)) == len(device.credentials) == is_able
    if is_able:
        assert tab.run("return sessionStorage.getItem('mediation')") == "conditional"
        assert "You can still sign in with your password alone." in tab.text
