"""Registration in a browser."""

import pytest

from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab
from tests.mail_server import message_text

GRACE = {
    "given_name": "Grace",
    "family_name": "Hopper",
    "email": "grace@navy.example",
    "password": "an entirely new one",
    "password_again": "an entirely new one",
}


def continue_sign_in(tab: Tab, login_name: str) -> None:
    """Continue from the page that shows the new login name."""
    assert tab.heading == "Your account is ready", tab.text
    assert login_name in tab.text
    tab.press("Continue")


def grace(number: int) -> dict[str, str]:
    return {"user_name": f"grace{number}", **GRACE, "email": f"grace{number}@navy.example"}


@pytest.mark.thorough
@pytest.mark.parametrize("number", [1, 2], ids=["asked for by the application", "by the link"])
def test_registration_creates_account(site: ExampleCompany, tab: Tab, number: int) -> None:
    authorization = site.ask(tab, **({"prompt": "create"} if number == 1 else {}))
    if number == 2:
        tab.follow("Create an account")
    assert (tab.heading, tab.focused) == ("Create your account", "field-user_name")
    tab.send(**grace(number))
    continue_sign_in(tab, f"grace{number}@acme.example")
    claims = site.tokens(tab, authorization).claims
    with site.world.read_only_services() as services:
        user = services.users.get(claims["sub"])
    assert (user.user_name, user.profile.email_verified) == (f"grace{number}", False)


@pytest.mark.thorough
def test_registration_shows_all_errors(site: ExampleCompany, tab: Tab) -> None:
    authorization = site.ask(tab, prompt="create")
    tab.send(**(grace(3) | {"email": "grace", "family_name": "", "password_again": "something else"}))
    assert (tab.status, tab.focused) == (422, "errors")
    assert tab.text_of("#errors h2") == "Check 3 fields"
    for link in tab.all("#errors a"):
        name = str(link.get_attribute("hash")).removeprefix("#field-")
        assert tab.text_of(f"#error-{name}") == f"Error: {link.text}"
        assert tab.field(name).get_attribute("aria-invalid") == "true"
        link.click()
        assert tab.focused == f"field-{name}"
    assert (tab.value("user_name"), tab.value("given_name"), tab.value("email")) == ("grace3", "Grace", "grace")
    assert (tab.value("password"), tab.value("password_again")) == ("", "")
    right = grace(3)
    tab.send(**{name: right[name] for name in ("email", "family_name", "password", "password_again")})
    continue_sign_in(tab, "grace3@acme.example")
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_language_change_keeps_registration_form(site: ExampleCompany, tab: Tab) -> None:
    site.ask(tab, prompt="create")
    tab.fill(**grace(4))
    tab.press("Deutsch")
    assert tab.find("html").get_attribute("lang") == "de"
    kept_values = {name: value for name, value in grace(4).items() if "password" not in name}
    assert {name: tab.value(name) for name in kept_values} == kept_values
    assert tab.value("password") == ""


@pytest.mark.thorough
def test_mailed_link_completes_registration(mailing_site: ExampleCompany, tab: Tab, make_profile: MakeProfile) -> None:
    """In another browser, such as on a phone, the link leads to the account."""
    site = mailing_site
    site.ask(tab, prompt="create")
    tab.send(**grace(5))
    assert tab.heading == "Check your mail"
    other = make_profile().tab()
    other.open(site.link_in_mail())
    assert other.heading == "Finish your account"
    assert "grace5@navy.example" in other.text
    # Another person may have requested the link, so the typed values are not kept.
    other.send(**{name: value for name, value in grace(5).items() if name != "email"})
    assert (other.heading, "grace5@acme.example" in other.text) == ("Enter your password", True)
    other.send(password=GRACE["password"])
    assert other.heading == "Profile"
    mail = site.mail()
    assert (mail["To"], mail["Subject"]) == ("grace5@navy.example", "Your account is ready")
    assert "grace5@acme.example" in message_text(mail)


def test_registration_link_continues_sign_in(mailing_site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site = mailing_site
    authorization = site.ask(tab, prompt="create")
    tab.send(**grace(6))
    other = profile.tab()
    other.open(site.link_in_mail())
    other.send()
    continue_sign_in(other, "grace6@acme.example")
    site.tokens(other, authorization)
    assert "grace6@acme.example" in message_text(site.mail())
