"""The pages of a logout requested by an application."""

from urllib.parse import urlencode

import pytest

from identity.domain.applications import ApplicationType
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.login.conftest import LoginUser


def test_logout_asks_for_confirmation(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    browser.open(party.logout_url(client_id=party.client_id, post_logout_redirect_uri=None), initiator=party.origin)
    check_page(browser.page, 200, "Sign out?")
    assert "<strong>Invoices</strong> asks to sign you out." in browser.page.text
    assert f"You are signed in as {ada.login_name} on this browser." in browser.page.text
    browser.submit(form="page-form")
    check_page(browser.page, 200, "You are signed out")
    assert not browser.session_cookies
    check_page(browser.open("/sign-out"), 200, "You are signed out")


def test_logout_return_survives_language_change(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    """Every redisplay needs it: browsers apply the page's form-action to the redirect."""
    browser.start_session(ada.user)
    browser.open(party.logout_url(client_id=party.client_id, state="s"), initiator=party.origin)
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]
    browser.submit(button=("ui_locales", "de"), form="page-form")
    assert '<html lang="de">' in browser.page.text
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]
    browser.submit(form="page-form")
    assert browser.external_redirect == "https://app.example/bye?state=s"


def test_native_application_is_opened_by_link(world: World, browser: Browser, ada: LoginUser) -> None:
    app = RelyingParty.register(
        world,
        name="Notes",
        type=ApplicationType.NATIVE,
        redirect_uri="com.example.notes:/cb",
        post_logout_redirect_uri="com.example.notes:/bye",
    )
    browser.start_session(ada.user)
    browser.open(app.logout_url(client_id=app.client_id, state="s"), initiator="https://app.example")
    browser.submit(form="page-form")
    check_page(browser.page, 200, "You are signed out")
    assert browser.external_redirect is None
    [back] = [item for item in browser.page.html.find_all("a") if item.get_text() == "Back to Notes"]
    assert back["href"] == "com.example.notes:/bye?state=s"
    assert not browser.session_cookies


@pytest.mark.parametrize("path", ["/sign-out", "/signed-out"])
def test_logout_pages_ignore_query_parameters(
    world: World, browser: Browser, party: RelyingParty, ada: LoginUser, path: str
) -> None:
    """They use only the pending request of this browser."""
    other_browser = Browser(world)
    other_browser.start_session(ada.user)
    other_browser.open(party.logout_url(client_id=party.client_id), initiator=party.origin)
    foreign = other_browser.url.partition("?")[2]
    assert foreign.startswith("request=")
    browser.start_session(ada.user)
    address = {"client_id": party.client_id, "post_logout_redirect_uri": "https://app.example/bye"}
    for query in (urlencode(address), foreign, "request=unknown", "request=%00", "request=a&request=b"):
        browser.open(f"{path}?{query}")
        assert not [item for item in browser.page.html.find_all("a") if item["href"].startswith("https://app.example")]
        assert "Invoices" not in browser.page.text
        assert len(browser.session_cookies) == 1
