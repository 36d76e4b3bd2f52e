"""Account pages in a browser."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import ChromiumProfile, MakeProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab


@pytest.mark.thorough
def test_profile_is_saved(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna = site.make_user()
    site.start_session(profile, anna)
    tab.open(f"{site.url}/account/profile")
    assert (tab.heading, tab.value("given_name"), tab.focused) == ("Profile", "Anna", "body")
    tab.send(given_name="Änne <b>", phone="+49 30 1234567", locale="de", zoneinfo="Europe/Berlin")
    # The account now uses the profile language.
    assert tab.find("html").get_attribute("lang") == "de"
    assert len(tab.all(".notice--success")) == 1
    assert (tab.value("given_name"), tab.value("phone")) == ("Änne <b>", "+49 30 1234567")
    with site.world.read_only_services() as services:
        stored = services.users.get(anna.user.id).profile
    assert (stored.given_name, stored.locale, stored.zoneinfo) == ("Änne <b>", "de", "Europe/Berlin")


@pytest.mark.thorough
def test_error_in_closed_section_opens_it(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    tab.open(f"{site.url}/account/profile")
    tab.press("More")
    tab.send(birthdate="yesterday", given_name="")
    assert (tab.status, tab.focused) == (422, "errors")
    assert tab.value("birthdate") == "yesterday"
    assert tab.field("birthdate").is_displayed()
    links = tab.all("#errors a")
    assert [link.get_attribute("hash") for link in links] == ["#field-given_name", "#field-birthdate"]
    links[1].click()
    assert tab.focused == "field-birthdate"


@pytest.mark.thorough
def test_concurrent_profile_edit_shows_conflict(site: ExampleCompany, profile: ChromiumProfile) -> None:
    site.start_session(profile, site.make_user())
    tab, other = profile.tab(), profile.tab()
    for item in (tab, other):
        item.open(f"{site.url}/account/profile")
    tab.send(nickname="Änne")
    other.send(phone="+49 30 1234567")
    assert (other.status, other.focused) == (409, "errors")
    assert "Currently saved: Änne" in other.text
    other.send(nickname="Änne")
    assert (other.status, other.value("nickname"), other.value("phone")) == (200, "Änne", "+49 30 1234567")


def test_password_change_ends_other_sessions(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, make_profile: MakeProfile
) -> None:
    anna = site.make_user()
    other_profile = make_profile()
    for chromium_profile in (profile, other_profile):
        site.start_session(chromium_profile, anna)
    tab.open(f"{site.url}/account/password")
    assert tab.focused == "field-current_password"
    new = "an entirely new one"
    tab.send(current_password="not hers", new_password=new, new_password_again=new)
    assert tab.status == 422
    assert "This is not your current password." in tab.text
    assert tab.value("new_password") == ""
    tab.send(current_password=anna.password, new_password=new, new_password_again=new)
    assert "Your password is changed. All your other sessions are ended." in tab.text
    other = other_profile.tab()
    other.open(f"{site.url}/account/profile")
    assert other.heading == "Sign in"
    other.send(login_name=anna.login_name)
    other.send(password=new)
    assert other.heading == "Profile"


@pytest.mark.thorough
def test_session_of_another_browser_is_ended(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, make_profile: MakeProfile
) -> None:
    anna = site.make_user()
    other_profile = make_profile()
    other = other_profile.tab()
    other.open(f"{site.url}/account")
    site.sign_in(other, anna)
    site.start_session(profile, anna)
    tab.open(f"{site.url}/account/sessions")
    assert tab.text_of(".badge") == "This one"
    (row,) = (element for element in tab.all("tbody tr") if "Chrome on Linux" in element.text)
    assert "127.0.0.1" in row.text
    with tab.leaving():
        row.find_element("css selector", "button").click()
    assert "Signed out." in tab.text
    assert len(tab.all("tbody tr")) == 1
    other.reload()
    assert other.heading == "Sign in"


@pytest.mark.thorough
def test_ending_current_session_signs_out(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    tab.open(f"{site.url}/account/sessions")
    with tab.leaving():
        tab.find("tbody button").click()
    assert tab.heading == "You are signed out"


@pytest.mark.thorough
def test_application_is_disconnected(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    authorization = site.ask(tab, scope="openid email offline_access", prompt="consent")
    tab.press("Allow")
    tokens = site.tokens(tab, authorization)
    tab.open(f"{site.url}/account/applications")
    assert "Invoices" in tab.find("tbody tr").text
    tab.follow("Disconnect …")
    assert tab.heading == "Disconnect Invoices?"
    tab.follow("Keep it")
    tab.follow("Disconnect …")
    tab.press("Disconnect application")
    assert "The application is disconnected." in tab.text
    assert tab.text_of(".empty h2") == "No applications yet"
    assert site.party.refresh(tokens.refresh_token).json["error"] == "invalid_grant"


@pytest.mark.thorough
def test_menu_opens_and_closes(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    tab.open(f"{site.url}/account/profile")
    menu = ".menu--end"
    tab.press("Account menu for Anna Berg")
    assert tab.find(menu).get_attribute("open")
    tab.type(Keys.TAB, Keys.ESCAPE)
    assert not tab.find(menu).get_attribute("open")
    assert tab.run("return document.activeElement.localName") == "summary"
    tab.type(Keys.ENTER)
    assert tab.find(menu).get_attribute("open")
    tab.find("h1").click()
    assert not tab.find(menu).get_attribute("open")


@pytest.mark.thorough
def test_account_switch(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    anna, bert = site.make_user(), site.make_user("Bert", "Sommer")
    site.start_session(profile, bert)
    site.start_session(profile, anna)
    # Times are whole seconds, so the order of sessions needs a difference of at least one.
    site.world.clock.advance(seconds=2)
    tab.open(f"{site.url}/account/profile")
    company_user, user = (anna, bert) if tab.value("given_name") == "Anna" else (bert, anna)
    tab.press(f"Account menu for {company_user.user.display_name}")
    tab.press(f"Switch to {user.login_name}")
    assert tab.value("given_name") == user.user.profile.given_name


@pytest.mark.thorough
def test_skip_link_skips_navigation(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    tab.open(f"{site.url}/account/sessions")
    tab.type(Keys.TAB)
    assert tab.text_of(":focus") == "Skip to the content"
    tab.type(Keys.ENTER)
    assert tab.focused == "main"


@pytest.mark.thorough
def test_navigation_is_a_menu_on_narrow_screens(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    tab.size(390, 844)
    tab.open(f"{site.url}/account/profile")
    assert not tab.find(".rail").is_displayed()
    tab.press("Menu")
    tab.follow("Sessions")
    assert tab.heading == "Sessions"


@pytest.mark.thorough
def test_times_use_browser_time_zone(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> None:
    site.start_session(profile, site.make_user())
    tab.command("Emulation.setTimezoneOverride", timezoneId="Asia/Kathmandu")
    tab.open(f"{site.url}/account/sessions")
    time = tab.find("time[data-local]")
    assert str(time.get_attribute("title")).endswith(" UTC")
    expected = tab.run(
        "const at = new Date(arguments[0].dateTime); return at.toLocaleTimeString('en', {timeZone: 'Asia/Kathmandu',"
        " hour: 'numeric', minute: '2-digit', timeZoneName: 'short'})",
        time,
    )
    assert time.text.endswith(expected)
    assert "GMT+5:45" in time.text
