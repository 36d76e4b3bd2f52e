"""Every page works without script (pages §1)."""

import pytest

from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab


@pytest.fixture
def profile(make_profile: MakeProfile) -> ChromiumProfile:
    return make_profile(script=False)


@pytest.mark.thorough
def test_page_scripts_are_disabled(site: ExampleCompany, tab: Tab) -> None:
    site.ask(tab)
    tab.send(login_name="anna@acme.example")
    assert not tab.all("#page-form button[type=button]")


def test_sign_in_without_script(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user(must_change=True)
    authorization = site.ask(tab)
    assert tab.focused == "field-login_name"
    tab.send(login_name="")
    assert (tab.status, tab.focused) == (422, "field-login_name")
    tab.send(login_name=anna.login_name)
    assert tab.focused == "field-password"
    tab.send(password="not hers")
    assert (tab.status, tab.focused) == (422, "field-password")
    tab.send(password=anna.password)
    tab.send(new_password="short", new_password_again="other")
    # The error summary has the focus although it is not a form control.
    assert tab.focused == "errors"
    tab.send(new_password="an entirely new one", new_password_again="an entirely new one")
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_language_change_without_script(site: ExampleCompany, tab: Tab) -> None:
    site.ask(tab)
    tab.fill(login_name="anna@acme.example")
    tab.press("Deutsch")
    assert (tab.heading, tab.value("login_name")) == ("Anmelden", "anna@acme.example")


@pytest.mark.thorough
def test_account_chooser_without_script(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna = site.make_user()
    site.start_session(profile, anna)
    authorization = site.ask(tab, prompt="select_account")
    tab.press(anna.login_name)
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_form_post_response_without_script(site: ExampleCompany, tab: Tab) -> None:
    authorization = site.ask(tab, response_mode="form_post")
    site.sign_in(tab, site.make_user())
    assert tab.heading == "Signing you in"
    tab.press("Continue to Invoices")
    site.redeemed(site.application.received[-1].members, authorization)


@pytest.mark.thorough
def test_registration_without_script(site: ExampleCompany, tab: Tab) -> None:
    authorization = site.ask(tab, prompt="create")
    password = "an entirely new one"
    tab.send(
        user_name="lise",
        given_name="Lise",
        family_name="Meitner",
        email="lise@physics.example",
        password=password,
        password_again=password,
    )
    assert (tab.heading, "lise@acme.example" in tab.text) == ("Your account is ready", True)
    tab.send()
    site.tokens(tab, authorization)


@pytest.mark.thorough
def test_account_pages_without_script(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna = site.make_user()
    site.start_session(profile, anna)
    tab.open(f"{site.url}/account")
    tab.send(nickname="Änne")
    assert "Your profile is saved." in tab.text
    tab.open(f"{site.url}/account/password")
    tab.send(current_password=anna.password, new_password="another password", new_password_again="another password")
    assert "Your password is changed." in tab.text
    tab.follow("Sessions")
    assert tab.find("tbody time[data-local]").text.endswith(" UTC")
    tab.follow("Applications")
    tab.press("Account menu for Anna Berg")
    tab.press("Sign out")
    assert tab.heading == "You are signed out"


@pytest.mark.thorough
def test_password_reset_without_script(mailing_site: ExampleCompany, tab: Tab) -> None:
    site = mailing_site
    anna = site.make_user(email="anna@navy.example")
    site.ask(tab)
    tab.send(login_name=anna.login_name)
    tab.follow("Forgot your password?")
    tab.send(login_name=anna.login_name)
    assert tab.heading == "Check your mail"
    tab.open(site.link_in_mail())
    tab.send(new_password="another password", new_password_again="another password")
    assert tab.heading == "Your password is changed"
    tab.follow("Sign in")
    tab.send(login_name=anna.login_name)
    tab.send(password="another password")
    assert tab.heading == "Profile"
    site.world.identity.senders["mail"].send_due()
    assert "password" in str(site.post.pop_only_message()["Subject"])
