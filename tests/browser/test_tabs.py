"""Several tabs, the Back button, and stale pages."""

import pytest

from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab

pytestmark = pytest.mark.thorough


def test_sign_ins_in_two_tabs_are_independent(site: ExampleCompany, profile: ChromiumProfile) -> None:
    anna, bert = site.make_user(), site.make_user("Bert", "Sommer")
    tab, other = profile.tab(), profile.tab()
    first, second = site.ask(tab), site.ask(other)
    tab.send(login_name=anna.login_name)
    other.send(login_name=bert.login_name)
    tab.send(password=anna.password)
    other.send(password=bert.password)
    assert site.tokens(tab, first).claims["sub"] == anna.user.id
    assert site.tokens(other, second).claims["sub"] == bert.user.id


def test_second_tab_shows_completed_sign_in(site: ExampleCompany, profile: ChromiumProfile) -> None:
    anna = site.make_user()
    tab, other = profile.tab(), profile.tab()
    authorization = site.ask(tab)
    tab.send(login_name=anna.login_name)
    other.open(tab.url)
    tab.send(password=anna.password)
    site.tokens(tab, authorization)
    came = len(site.application.received)
    other.send(password=anna.password)
    assert (other.heading, other.status) == ("This sign-in is complete", 200)
    assert f"You are signed in as {anna.login_name}." in other.text
    other.follow("Go to your account")
    assert other.heading == "Profile"
    assert len(site.application.received) == came


def test_back_after_sign_in_issues_no_second_code(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    site.sign_in(tab, anna)
    site.tokens(tab, authorization)
    came = len(site.application.received)
    tab.back()
    assert tab.heading == "This sign-in is complete"
    assert f"You are signed in as {anna.login_name}." in tab.text
    assert len(site.application.received) == came


def test_back_to_login_name_allows_another_user(site: ExampleCompany, tab: Tab) -> None:
    anna, bert = site.make_user(), site.make_user("Bert", "Sommer")
    authorization = site.ask(tab)
    tab.send(login_name=anna.login_name)
    tab.back()
    assert tab.heading == "Sign in"
    site.sign_in(tab, bert)
    assert site.tokens(tab, authorization).claims["sub"] == bert.user.id


def test_stale_account_form_is_redisplayed(site: ExampleCompany, profile: ChromiumProfile) -> None:
    """After signing out and in again, the token belongs to an ended session."""
    anna = site.make_user()
    site.start_session(profile, anna)
    old, tab = profile.tab(), profile.tab()
    old.open(f"{site.url}/account/profile")
    tab.open(f"{site.url}/sign-out")
    tab.send()
    tab.open(f"{site.url}/account/profile")
    site.sign_in(tab, anna)
    old.send(nickname="Änne")
    assert (old.status, old.focused) == (422, "errors")
    assert "This page was open for too long. Check what you entered and send it again." in old.text
    assert old.value("nickname") == "Änne"
    old.send()
    assert (old.status, old.value("nickname")) == (200, "Änne")
    assert "Your profile is saved." in old.text


def test_stale_sign_in_form_is_redisplayed(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    tab.run("document.getElementsByName('csrf_token')[0].value = 'x'")
    tab.send(login_name=anna.login_name)
    assert (tab.status, tab.heading, tab.value("login_name")) == (422, "Sign in", anna.login_name)
    assert tab.title.startswith("Error: ")
    tab.send()
    tab.send(password=anna.password)
    site.tokens(tab, authorization)


def test_expired_sign_in_restarts(site: ExampleCompany, tab: Tab) -> None:
    anna = site.make_user()
    authorization = site.ask(tab)
    tab.send(login_name=anna.login_name)
    site.world.clock.advance(minutes=31)
    tab.send(password=anna.password)
    assert (tab.status, tab.heading) == (410, "This sign-in took too long")
    tab.press("Start again")
    assert tab.heading == "Sign in"
    site.sign_in(tab, anna)
    site.tokens(tab, authorization)


def test_sign_in_is_bound_to_its_browser(site: ExampleCompany, tab: Tab, make_profile: MakeProfile) -> None:
    site.ask(tab)
    stranger = make_profile().tab()
    stranger.open(tab.url)
    assert (stranger.status, stranger.heading) == (400, "This sign-in was started in another browser")
    assert not stranger.all("form, input")


def test_unknown_sign_in_shows_error(site: ExampleCompany, tab: Tab) -> None:
    tab.open(f"{site.url}/login/0192f3a7-0000-7000-8000-000000000000")
    assert (tab.status, tab.heading) == (404, "This sign-in is no longer known")
    assert [link.text for link in tab.all("main a")] == ["Your account"]


@pytest.mark.parametrize("again", ["reload", "back"])
def test_reload_does_not_repeat_action(site: ExampleCompany, profile: ChromiumProfile, tab: Tab, again: str) -> None:
    site.start_session(profile, site.make_user())
    tab.open(f"{site.url}/account/profile")
    tab.send(nickname="Änne")
    changes = len(site.world.audit_events(event="user.changed"))
    getattr(tab, again)()
    assert tab.heading == "Profile"
    assert len(site.world.audit_events(event="user.changed")) == changes
