"""Sessions and connected applications in the account, and cross-site forms."""

import re

import pytest

from identity.domain.users import HumanUser
from identity.pages.translation import MessageCatalog, Translator
from identity.pages.user_agents import describe_user_agent
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import (
    ACCOUNT_ORIGIN,
    NEW,
    OLD,
    make_user_with_password,
    press,
    sessions_of,
    stored,
    token_of,
)

# --- sessions ---------------------------------------------------------------------------------------------------------

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0"
    " Mobile/15E148 Safari/604.1"
)


def test_sessions_are_listed_and_ended(world: World, browser: Browser, ada: HumanUser) -> None:
    phone = Browser(world, user_agent=IPHONE)
    session = phone.start_session(ada)
    tree = check_page(browser.open("/account/sessions"), 200, "Sessions")
    rows = ["".join(item.itertext()) for item in tree.find(".//tbody").iter("tr")]
    assert len(rows) == 2
    assert "Firefox on Linux" in rows[0]
    assert "This one" in rows[0]
    assert "Safari on iPhone" in rows[1]
    assert "This one" not in rows[1]
    press(browser, session=session.id)
    assert "Signed out." in browser.page.text
    assert phone.open("/account").request.path.startswith("/login/")
    assert len(sessions_of(world, ada)) == 1
    assert "Sign out everywhere else" not in browser.page.text


def test_all_other_sessions_can_be_ended(world: World, browser: Browser, ada: HumanUser) -> None:
    for _ in range(3):
        Browser(world).start_session(ada)
    browser.open("/account/sessions")
    press(browser, others="yes")
    assert browser.path == "/account/sessions"
    assert len(sessions_of(world, ada)) == 1


def test_current_session_can_be_ended(world: World, browser: Browser, ada: HumanUser) -> None:
    [session] = sessions_of(world, ada)
    browser.post_form(
        "/account/sessions", {"csrf_token": token_of(browser), "session": session.id}, initiator=ACCOUNT_ORIGIN
    )
    assert browser.path == "/signed-out"
    assert not browser.session_cookies
    assert sessions_of(world, ada) == ()


def test_sessions_of_other_users_are_404(world: World, browser: Browser, ada: HumanUser) -> None:
    eve = Browser(world)
    session = eve.start_session(world.make_human_user())
    token = token_of(browser)
    answers = [
        browser.post_form("/account/sessions", {"csrf_token": token, "session": item}, initiator=ACCOUNT_ORIGIN)
        for item in (session.id, "0192f3a7-5b1e-7c44-9d0e-3f2a8b61c7d5", "")
    ]
    assert {answer.status_int for answer in answers} == {404}
    assert len({re.sub(r"<code>[0-9a-f-]{36}</code>", "", answer.text) for answer in answers}) == 1
    assert eve.open("/account").request.path == "/account/profile"


# --- applications -----------------------------------------------------------------------------------------------------


def test_applications_are_listed_and_disconnected(world: World, browser: Browser, ada: HumanUser) -> None:
    assert "No applications yet" in browser.open("/account/applications").text
    client, credentials = world.make_web_application(), world.make_web_application()
    issued_authorization = world.make_authorization(ada, client, scope=("openid", "profile", "email", "offline_access"))
    world.make_authorization(ada, credentials, scope=("openid", "urn:service:iam:org:projects:roles"))
    tree = check_page(browser.open("/account/applications"), 200, "Applications")
    rows = {item.find(".//a").attrib["href"]: "".join(item.itertext()) for item in tree.find(".//tbody").iter("tr")}
    row = rows[f"/account/applications/{client.client_id}/disconnect"]
    assert "Your name and profile, your email address" in row
    assert "Stays connected until you disconnect it." in row
    with world.read_only_services() as services:
        application_client = services.applications.find_client(credentials.client_id)
    assert application_client is not None
    assert (
        f"Your roles in {application_client.project.name}"
        in rows[f"/account/applications/{credentials.client_id}/disconnect"]
    )
    assert application_client.organization.name in rows[f"/account/applications/{credentials.client_id}/disconnect"]

    browser.open(f"/account/applications/{client.client_id}/disconnect")
    assert browser.page.status_int == 200
    assert "It loses access to your account at once." in browser.page.text
    assert world.client.fetch_userinfo(issued_authorization.access_token).status_int == 200
    browser.submit(form="page-form")
    assert browser.path == "/account/applications"
    assert "The application is disconnected." in browser.page.text
    assert client.client_id not in browser.page.text
    assert world.client.fetch_userinfo(issued_authorization.access_token).status_int == 401


def test_unconnected_application_is_404(world: World, browser: Browser, ada: HumanUser) -> None:
    client, person = world.make_web_application(), world.make_human_user()
    world.make_authorization(person, client)
    world.make_authorization(ada, world.make_web_application())
    pages = set()
    for client_id in (client.client_id, "0" * 32, "x", "%00"):
        answer = browser.open(f"/account/applications/{client_id}/disconnect")
        assert answer.status_int == 404
        pages.add(re.sub(r"<code>[0-9a-f-]{36}</code>|\?ui_locales", "", answer.text))
        sent = {"csrf_token": token_of(browser)}
        answer = browser.post_form(f"/account/applications/{client_id}/disconnect", sent, initiator=ACCOUNT_ORIGIN)
        assert answer.status_int == 404
    assert len(pages) == 1
    with world.read_only_services() as services:
        assert [len(services.users.list_connected_applications(user.id)) for user in (person, ada)] == [1, 1]


# --- account switch ---------------------------------------------------------------------------------------------------


def test_account_switch(world: World, browser: Browser, ada: HumanUser) -> None:
    grace = world.make_human_user()
    world.clock.advance(1)
    browser.start_session(grace)
    [at_ada] = sessions_of(world, ada)
    assert f"Switch to {ada.user_name}@" in browser.open("/account/sessions").text
    world.clock.advance(1)
    press(browser, session=at_ada.id)
    assert browser.answers[0].request.path == "/account/switch"
    assert browser.path == "/account/profile"
    assert f"Switch to {grace.user_name}@" in browser.page.text
    # Both sessions stay signed in.
    assert len(browser.session_cookies) == 2


def test_add_account_to_browser(world: World, browser: Browser, ada: HumanUser) -> None:
    grace = make_user_with_password(world)
    sent = {"csrf_token": token_of(browser), "session": "new"}
    browser.post_form("/account/switch", sent, initiator=ACCOUNT_ORIGIN)
    assert browser.path.startswith("/login/")
    world.clock.advance(1)
    browser.sign_in(grace.user_name, OLD)
    assert browser.path == "/account/profile"
    assert f"Switch to {ada.user_name}@" in browser.page.text


def test_accounts_of_other_browsers_cannot_be_switched_to(world: World, browser: Browser) -> None:
    session = Browser(world).start_session(world.make_human_user())
    sent = {"csrf_token": token_of(browser), "session": session.id}
    assert browser.post_form("/account/switch", sent, initiator=ACCOUNT_ORIGIN).status_int == 404
    assert browser.open("/account/switch").request.path == "/account/profile"


# --- cross-site forms -------------------------------------------------------------------------------------------------

FORMS: dict[str, dict[str, str]] = {
    "/account/profile": {"given_name": "Eve", "family_name": "Eve", "version": "1"},
    "/account/password": {"current_password": OLD, "new_password": NEW, "new_password_again": NEW},
    "/account/sessions": {"others": "yes"},
    "/account/activity/not-me": {},
    "/account/data": {},
    "/account/switch": {"session": "new"},
}


@pytest.mark.storages("memory")
def test_account_forms_require_csrf_token(world: World, browser: Browser, ada: HumanUser) -> None:
    tokens = ["", "x" * 43]
    for person in (ada, world.make_human_user()):
        other = Browser(world)
        other.start_session(person)
        tokens.append(token_of(other))
    before = stored(world, ada), len(sessions_of(world, ada))
    for token in tokens:
        for path, fields in FORMS.items():
            answer = browser.post_form(path, fields | {"csrf_token": token}, initiator=ACCOUNT_ORIGIN)
            if path == "/account/switch":
                assert answer.request.path == "/account/profile"
            else:
                assert answer.status_int == 422
                assert "This page was open for too long. Check what you entered and send it again." in answer.text
            assert (stored(world, ada), len(sessions_of(world, ada))) == before


@pytest.mark.storages("memory")
def test_cross_site_account_form_is_refused(world: World, browser: Browser, ada: HumanUser) -> None:
    token = token_of(browser)
    before = stored(world, ada), len(sessions_of(world, ada))
    browser.cookies.header = lambda *_, **__: "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies)  # type: ignore[method-assign]
    for path, fields in FORMS.items():
        answer = browser.post_form(path, fields | {"csrf_token": token}, initiator="https://evil.example")
        assert answer.status_int == 403
        assert (stored(world, ada), len(sessions_of(world, ada))) == before


# --- devices ----------------------------------------------------------------------------------------------------------


def test_user_agent_description() -> None:
    for user_agent, description in {
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0": "Firefox on Windows",
        IPHONE: "Safari on iPhone",
        "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0": "Edge on Windows",
        "Mozilla/5.0 (X11; CrOS x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36": "Chrome on ChromeOS",
        "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36": "Chrome on Android",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/19.0 Safari/605.1.15": "Safari on macOS",
        "Mozilla/5.0 (iPad; CPU OS 19_0) CriOS/140.0 Mobile Safari/604.1": "Chrome on iPad",
        "curl/8.9": "Unknown device",
        "<b>Windows</b>": "Windows",
        "": "Unknown device",
    }.items():
        assert describe_user_agent(user_agent, Translator("en", MessageCatalog())) == description


def test_user_agent_is_escaped(world: World, browser: Browser, ada: HumanUser) -> None:
    Browser(world, user_agent="<script>Firefox/1 Linux").start_session(ada)
    assert "<script>F" not in browser.open("/account/sessions").text
