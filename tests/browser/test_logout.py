"""Logout by an application or by the user."""

from urllib.parse import urlencode

import pytest

from tests.browser.chromium import ChromiumProfile
from tests.browser.example_company import CompanyUser, ExampleCompany
from tests.browser.tab import Tab


def is_signed_in(site: ExampleCompany, profile: ChromiumProfile) -> bool:
    tab = profile.tab()
    site.ask(tab, prompt="none")
    assert tab.url.startswith(site.application.callback)
    return "error=login_required" not in tab.url


def signed_in(site: ExampleCompany, tab: Tab) -> tuple[CompanyUser, str]:
    """Sign in a new user; returns the user and the application's ID token."""
    anna = site.make_user()
    authorization = site.ask(tab)
    site.sign_in(tab, anna)
    return anna, site.tokens(tab, authorization).id_token


def test_rp_initiated_logout_returns_to_application(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    _, id_token = signed_in(site, tab)
    tab.open(site.application.link_to(site.party.logout_url(id_token, state="s")))
    tab.follow("Sign in")
    assert tab.url == f"{site.application.goodbye}?state=s"
    assert not is_signed_in(site, profile)


@pytest.mark.thorough
def test_logout_without_hint_asks_for_confirmation(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna, _ = signed_in(site, tab)
    parameters = {"client_id": site.party.client_id, "post_logout_redirect_uri": site.application.goodbye}
    tab.open(f"{site.world.client.discovery['end_session_endpoint']}?{urlencode(parameters)}")
    assert tab.heading == "Sign out?"
    assert "Invoices asks to sign you out." in tab.text
    assert f"You are signed in as {anna.login_name} on this browser." in tab.text
    question = tab.url
    tab.follow("Stay signed in")
    assert is_signed_in(site, profile)
    tab.open(question)
    tab.press("Sign out")
    assert tab.url == site.application.goodbye
    assert not is_signed_in(site, profile)


@pytest.mark.thorough
def test_menu_signs_out(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    signed_in(site, tab)
    tab.open(f"{site.url}/account")
    tab.press("Account menu for Anna Berg")
    tab.press("Sign out")
    assert tab.heading == "You are signed out"
    assert not is_signed_in(site, profile)
    tab.follow("Sign in again")
    assert tab.heading == "Sign in"


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["/console", "/nothing"], ids=["forbidden", "not found"])
def test_error_page_allows_switching_accounts(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, path: str
) -> None:
    signed_in(site, tab)
    tab.open(site.url + path)
    assert tab.status in (403, 404)
    tab.follow("Go to the start page")
    assert tab.url.startswith(f"{site.url}/account")
    tab.open(site.url + path)
    tab.follow("Sign out", inside="main")
    tab.press("Sign out")
    assert tab.heading == "You are signed out"
    assert not is_signed_in(site, profile)


@pytest.mark.thorough
def test_back_after_logout_shows_no_account_data(site: ExampleCompany, tab: Tab) -> None:
    anna, _ = signed_in(site, tab)
    tab.open(f"{site.url}/account/profile")
    tab.open(f"{site.url}/sign-out")
    tab.send()
    tab.back()
    tab.back()
    assert tab.heading == "Sign in"
    assert anna.login_name not in tab.text
