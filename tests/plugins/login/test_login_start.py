"""Start of sign-ins, and their error pages."""

from dataclasses import replace
from urllib.parse import urlsplit

from identity.plugins.login.pages.login_start import parse_target_path
from identity.testing.browser import PASSWORD, Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.login.conftest import LoginUser, opened

# --- account pages ----------------------------------------------------------------------------------------------------


def test_account_page_sign_in(browser: Browser, ada: LoginUser) -> None:
    browser.open("/login?target=/account/sessions%3Fa%3D1")
    check_page(browser.page, 200, "Sign in")
    assert "to continue to your account" in browser.page.text
    browser.sign_in(ada.login_name, PASSWORD)
    assert urlsplit(browser.url)[2:4] == ("/account/sessions", "a=1")
    browser.open("/login?target=/console")
    assert browser.path == "/console"


def test_manager_sign_in_opens_console(world: World, browser: Browser, ada: LoginUser) -> None:
    for manages, arrived in (
        (False, "/account/profile"),
        (True, f"/console/organizations/{ada.organization.id}/overview"),
    ):
        if manages:
            world.assign_manager_role(ada.user, "ORG_OWNER")
        browser = Browser(world)
        browser.open("/login")
        browser.sign_in(ada.login_name, PASSWORD)
        assert browser.path == arrived
        # The requested target takes precedence for managers, too.
        other = Browser(world)
        other.open("/login?target=/account/sessions")
        other.sign_in(ada.login_name, PASSWORD)
        assert other.path == "/account/sessions"


def test_target_must_be_a_local_path() -> None:
    for good in ("/account/sessions?a=1", "/"):
        assert parse_target_path(good) == good
    other_hosts = (
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "/\\/evil",
        "javascript:alert(1)",
        "account",
    )
    for bad in (*other_hosts, "", "/a\nb", "/a b", "/" + "x" * 3000, "/a\\b", "/é"):
        assert parse_target_path(bad) == "/"


# --- errors -----------------------------------------------------------------------------------------------------------


def test_unknown_sign_in_is_404(browser: Browser) -> None:
    browser.open("/login/01a1fd23-3a1d-751f-997e-bb4e70921b37")
    check_page(browser.page, 404, "This sign-in is no longer known")
    assert "Go back to the application and open it again." in browser.page.text


def test_sign_in_is_bound_to_its_browser(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    other = Browser(world)
    for path in ("", "/password", "/accounts", "/register", "/password/change", "/consent"):
        other.open(browser.path + path)
        check_page(other.page, 400, "This sign-in was started in another browser")


def test_expired_sign_in_restarts(world: World, browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    auth_request = opened(browser, party, login_hint=ada.login_name)
    world.clock.advance(minutes=31)
    browser.reload()
    check_page(browser.page, 410, "This sign-in took too long")
    other_browser = Browser(world)
    check_page(other_browser.open(browser.path), 410, "This sign-in took too long")
    assert "Go back to the application and open it again." in other_browser.page.text
    browser.submit(form="page-form")
    check_page(browser.page, 200, "Sign in")
    party.obtain_tokens(browser.sign_in(ada.login_name, PASSWORD), auth_request)


def test_completed_sign_in_shows_notice(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    opened(browser, party)
    path = browser.path
    browser.sign_in(ada.login_name, PASSWORD)
    for below_it in ("", "/password", "/register"):
        browser.open(path + below_it)
        check_page(browser.page, 200, "This sign-in is complete")
        assert f"You are signed in as {ada.login_name}." in browser.page.text
        assert "Go to your account" in browser.page.text


def test_deleted_application_ends_sign_in(world: World, browser: Browser, party: RelyingParty) -> None:
    opened(browser, party)
    with world.transaction_services() as services:
        application = services.applications.get(party.client_id)
        services.storage.applications.update(replace(application, active=False, version=application.version + 1))
    browser.reload()
    check_page(browser.page, 400, "This application is unknown")


def test_unregistered_redirect_uri_shows_error(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    browser.open(authorization.url.replace("app.example", "evil.example"), initiator=party.origin)
    tree = check_page(browser.page, 400, "We cannot send you back to this application")
    assert "evil.example" not in browser.page.text
    assert "Invoices asked us to return you to an address that is not registered for it." in browser.page.text
    terms = ["".join(item.itertext()) for item in tree.iter("dt")]
    assert terms == ["Error", "Detail", "Request id", "Time"]


def test_form_post_response_page(browser: Browser, party: RelyingParty, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    opened(browser, party, response_mode="form_post")
    tree = check_page(browser.page, 200, "Signing you in")
    assert "form-action" not in browser.page.headers["Content-Security-Policy"]
    assert "Continue to Invoices" in browser.page.text
    scripts = [item.attrib["src"].partition("-")[0] for item in tree.iter("script")]
    assert scripts == ["/static/identity", "/static/form_post"]
