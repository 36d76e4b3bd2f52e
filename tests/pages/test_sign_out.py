"""Signing out on the service's own pages needs no plugin."""

from typing import Any

import pytest

from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.login.conftest import LoginUser


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def ada(world: World) -> LoginUser:
    return LoginUser(world)


def test_cross_site_logout_is_refused(browser: Browser, ada: LoginUser) -> None:
    browser.start_session(ada.user)
    browser.post_form("/sign-out", {}, initiator="https://evil.example")
    assert browser.page.status_int == 403
    assert len(browser.session_cookies) == 1


def test_logout_ends_expired_sessions(world: World, browser: Browser, ada: LoginUser) -> None:
    grace = LoginUser(world)
    old = browser.start_session(grace.user)
    world.clock.advance(hours=13)
    browser.start_session(ada.user)
    browser.open("/sign-out")
    assert grace.login_name not in browser.page.text
    browser.submit(form="page-form")
    assert not browser.session_cookies
    assert not is_live(world, old.id)


@pytest.mark.parametrize("path", ["/account", "/sign-out"])
def test_one_of_several_accounts_signs_out(world: World, browser: Browser, ada: LoginUser, path: str) -> None:
    grace = LoginUser(world)
    other = browser.start_session(grace.user)
    world.clock.advance(seconds=1)
    session = browser.start_session(ada.user)
    browser.open(path)
    [button] = [item for item in browser.page.html.find_all("button") if item.text == f"Sign out of {ada.login_name}"]
    fields = {item["name"]: item["value"] for item in (*button.parent.find_all("input"), button) if item.get("name")}
    browser.post_form("/sign-out", fields, initiator=browser.login_url)
    assert browser.path.startswith("/account/")
    assert grace.login_name in browser.page.text
    assert [is_live(world, item.id) for item in (session, other)] == [False, True]


def test_sign_out_of_an_ended_session_ends_no_other(world: World, browser: Browser, ada: LoginUser) -> None:
    session = browser.start_session(ada.user)
    browser.post_form("/sign-out", {"session": "unknown"}, initiator=browser.login_url)
    assert is_live(world, session.id)


def is_live(world: World, session_id: str) -> bool:
    with world.read_only_services() as services:
        session = services.storage.sessions.find(session_id)
    return session is not None and session.ended_at is None


@pytest.fixture
def bare_world(make_world: WorldFactory) -> World:
    """A service in which no application can request a logout."""
    plugins = " ".join(name for name in DEFAULT_PLUGINS.split() if name != "end_session")
    return make_world(**{"identity.plugins": f"memory {plugins}"})


@pytest.mark.storages("memory")  # the plugins matter, not the storage
@pytest.mark.parametrize("path", ["/account", "/console"])
def test_menu_signs_out_without_the_end_session_plugin(bare_world: World, path: str) -> None:
    browser, grace = Browser(bare_world), LoginUser(bare_world)
    bare_world.assign_manager_role(grace.user, "ORG_OWNER")
    session = browser.start_session(grace.user)
    browser.open(path)
    assert browser.path.startswith(path)
    [form] = [form for form in browser.page.forms.values() if form.action == "/sign-out"]
    browser.post_form("/sign-out", form.submit_fields(), initiator=browser.login_url)
    assert_signed_out(bare_world, browser, session)


@pytest.mark.storages("memory")  # the plugins matter, not the storage
def test_error_page_leads_to_sign_out_without_the_end_session_plugin(bare_world: World) -> None:
    browser = Browser(bare_world)
    session = browser.start_session(LoginUser(bare_world).user)
    browser.open("/nothing")
    browser.click("Sign out")
    check_page(browser.page, 200, "Sign out?")
    browser.submit(form="page-form")
    assert_signed_out(bare_world, browser, session)


@pytest.mark.storages("memory")  # the plugins matter, not the storage
@pytest.mark.parametrize("path", ["/sign-out", "/signed-out"])
@pytest.mark.parametrize("query", ["request=unknown", "request=", "request=%ff", "request=a&request=b"])
def test_pages_ignore_requests_of_applications_without_the_end_session_plugin(
    bare_world: World, path: str, query: str
) -> None:
    browser = Browser(bare_world)
    browser.start_session(LoginUser(bare_world).user)
    browser.open(f"{path}?{query}")
    assert browser.page.status_int in (200, 404)
    assert len(browser.session_cookies) == 1


def assert_signed_out(world: World, browser: Browser, session: Any) -> None:
    check_page(browser.page, 200, "You are signed out")
    assert not browser.session_cookies
    assert not is_live(world, session.id)
