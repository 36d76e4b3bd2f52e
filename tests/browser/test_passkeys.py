"""Passkeys, by authenticators that Chromium pretends to have."""

from tests.browser.acme import Acme, Person
from tests.browser.authenticator import Authenticator
from tests.browser.tab import Tab

ADD = "/login?target=/account/security&enrol=passkeys"


def add_passkey(site: Acme, tab: Tab, person: Person) -> None:
    """In the account, from a browser where nobody is signed in."""
    tab.open(site.url + ADD)
    site.sign_in(tab, person)
    assert tab.heading == "Add a passkey"
    tab.send()
    assert tab.url == f"{site.url}/account/security", tab.text


def sign_out(site: Acme, tab: Tab) -> None:
    tab.open(f"{site.url}/sign-out")
    tab.send()


def enrolments(site: Acme, person: Person):
    with site.world.reading() as services:
        return services.factors.of(person.user.id, "passkeys")


def test_a_passkey_is_added_and_signs_in_alone(site: Acme, tab: Tab) -> None:
    anna, device = site.a_person(), Authenticator(tab)
    add_passkey(site, tab, anna)
    (credential,) = device.credentials
    assert credential["isResidentCredential"]
    assert credential["rpId"] == "localhost"
    (kept,) = enrolments(site, anna)
    assert kept.name == "Chromium on Linux" or "on Linux" in kept.name
    sign_out(site, tab)
    device.present(False)
    asked = site.ask(tab, scope="openid", acr_values="urn:service:iam:acr:phr")
    device.present(True)
    with tab.leaving():
        tab.run("document.querySelector('button.button--wide:not(.button--primary)').click()")
    claims = site.tokens(tab, asked).claims
    assert claims["sub"] == anna.user.id
    assert claims["acr"] == "urn:service:iam:acr:phr"
    assert claims["amr"] == ["swk", "user", "mfa"]
