"""Users in the console: accounts, credentials and sessions."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from identity import hookimpl
from identity.domain.attempts import MAX_ATTEMPTS
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.pages.layout import NavigationItem
from identity.plugins.console.user_sections import UserSection, UserSectionRow
from identity.services.access_control import Principal
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser
from identity.storage import paging
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.mail_server import ReceivingMailServer, extract_one_time_link, message_text

NEW = {"user_name": "anna", "given_name": "Anna", "family_name": "Berg"}


def users(browser: Browser, organization: Organization, rest: str = "") -> Any:
    return browser.open(f"/console/organizations/{organization.id}/users{rest}")


def show(browser: Browser, person: HumanUser, rest: str = "") -> Any:
    return browser.open(f"/console/users/{person.id}{rest}")


def stored(world: World, person: HumanUser) -> HumanUser:
    with world.read_only_services() as services:
        user: HumanUser = services.users.get(person.id)
        return user


def secret(browser: Browser) -> str:
    return str(browser.page.html.find(id="secret-value").get_text())


@pytest.fixture
def anna(world: World, organization: Organization) -> HumanUser:
    return world.make_human_user(organization)


# --- list -------------------------------------------------------------------------------------------------------------


def test_user_list_shows_locked_users(
    world: World, owner: Browser, organization: Organization, anna: HumanUser
) -> None:
    user = world.make_human_user(organization)
    at = world.clock()
    with world.transaction_services() as services:
        for _ in range(MAX_ATTEMPTS):
            at = services.storage.attempts.reserve(f"user:{anna.id}", reserved_at=at, user_id=anna.id).next_attempt_at
    rows = {row.a.get("href"): row.text for row in users(owner, organization).html.select("tbody tr")}
    assert "Locked" in rows[f"/console/users/{anna.id}"]
    assert "Locked" not in rows[f"/console/users/{user.id}"]
    assert "Locked" in show(owner, anna).html.h1.parent.text


def test_user_list_shows_states_and_sign_ins(world: World, owner: Browser, organization: Organization) -> None:
    invited = world.make_human_user(organization)
    active = world.make_human_user(organization)
    set_password(world, active)
    must_change, user = world.make_human_user(organization), world.make_human_user(organization)
    with world.transaction_services() as services:
        services.users.set_one_time_password(must_change.id, principal=Principal.OPERATOR)
        services.users.deactivate(user.id, principal=Principal.OPERATOR)
    Browser(world).start_session(active)
    page = users(owner, organization)
    rows = {
        row.find("a")["href"].rpartition("/")[2]: [cell.get_text(strip=True) for cell in row.find_all("td")]
        for row in page.html.select("tbody tr")
    }
    login_name = f"{invited.user_name}@{organization.primary_domain}"
    assert rows[invited.id][:3] == ["Invited", login_name, "Never"]
    assert rows[active.id][:3:2] == ["Active", "just now"]
    states = ["Active", "Active", "Deactivated", "Invited", "Must change password"]
    assert sorted(row[0] for row in rows.values()) == states
    assert show(owner, user, "/security").html.find(id="password") is None, "there is nothing to get into"
    page = users(owner, organization, "?state=deactivated")
    assert len(page.html.select("tbody tr")) == 1
    page = users(owner, organization, f"?q={active.user_name}")
    [row] = page.html.select("tbody tr")
    assert row.select("td")[1].get_text() == f"{active.user_name}@{organization.primary_domain}"


def test_user_list_search_and_total(world: World, owner: Browser, organization: Organization) -> None:
    add_people(world, organization)

    def found(query: str) -> list[str]:
        rows = users(owner, organization, f"?q={query}").html.select("tbody tr")
        return [row.find("a").get_text() for row in rows]

    assert found("byron") == ["The Countess"]
    assert found("HOPP") == ["Grace Hopper"]
    assert found("hopper+grace") == ["Grace Hopper"]
    assert found("bolt.example") == ["Grace Hopper"]
    assert found("emilie") == ["Émilie du Châtelet"]
    assert found(f"grace%40{organization.primary_domain}") == ["Grace Hopper"]
    assert found("nobody") == []
    assert "4 in all" in users(owner, organization)
    assert "1–2 of 4" in users(owner, organization, "?limit=2")
    assert "1 in all" in users(owner, organization, "?q=hopp")


def test_list_says_which_of_how_many_rows_it_shows(
    world: World, owner: Browser, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_people(world, organization)

    def shown_rows(href: str) -> str:
        text: str = owner.open(href).html.select_one(".pagination p").get_text()
        return text

    path = f"/console/organizations/{organization.id}/users?limit=3"
    assert shown_rows(path) == "1–3 of 4"
    following = owner.click("Next page").request.path_qs
    assert shown_rows(following) == "4 of 4"
    assert shown_rows(following.replace("limit=3", "limit=1")) == "4 of 4"
    # The number is only displayed, so the page does not depend on it.
    for offset in ("", "-1", "9", "1e3", "٣", "9" * 10):
        assert shown_rows(re.sub(r"offset=\d+", f"offset={quote(offset)}", following)) == "1 on this page"
    monkeypatch.setattr(paging, "MAX_COUNTED_ROWS", 2)
    assert shown_rows(path) == "1–3 of more than 3"
    assert shown_rows(f"{path}&limit=1".replace("limit=3&", "")) == "1 of more than 2"
    assert shown_rows(following) == "4 of 4"


def test_user_list_sort_by_heading_persists_over_pages(
    world: World, owner: Browser, organization: Organization
) -> None:
    add_people(world, organization)
    page = users(owner, organization)
    assert sorted_by(page) == {"Login name": "ascending"}
    page = users(owner, organization, "?sort=-created_at")
    for column, cell in (("Login name", "td:nth-of-type(2)"), ("Name", "a")):
        for direction in ("ascending", "descending"):
            [heading] = [item for item in page.html.select("thead a") if item.get_text() == column]
            page = owner.open(f"{heading['href']}&limit=1")
            assert sorted_by(page) == {column: direction}
            values = []
            while True:
                [row] = page.html.select("tbody tr")
                values.append(row.select_one(cell).get_text())
                following = page.html.select_one("a[rel=next]")
                if following is None:
                    break
                page = owner.open(following["href"])
            assert len(values) == 4
            assert values == sorted(values, key=str.casefold, reverse=direction == "descending")


def test_user_list_sort_field_persists_in_search(world: World, owner: Browser, organization: Organization) -> None:
    add_people(world, organization)
    page = users(owner, organization, "?sort=-display_name&q=e")
    assert sorted_by(page) == {"Name": "descending"}
    names = [row.find("a").get_text() for row in page.html.select("tbody tr")]
    assert names == sorted(names, key=str.casefold, reverse=True)
    assert page.html.select_one(".toolbar #field-sort option[selected]")["value"] == "-display_name"
    usual = users(owner, organization).html.select_one(".toolbar #field-sort option[selected]")
    assert usual["value"] == "user_name", "what is chosen is not the order of the list"
    assert "Choose one of the values offered." in users(owner, organization, "?sort=secrets")


def add_people(world: World, organization: Organization) -> None:
    """Add three users besides the signed-in owner."""
    for user_name, given_name, family_name, email, display_name in (
        ("countess", "Augusta", "Byron", "a@acme.example", "The Countess"),
        ("grace", "Grace", "Hopper", "grace@bolt.example", ""),
        ("emilie", "Émilie", "du Châtelet", "", ""),
    ):
        person = {"user_name": user_name, "given_name": given_name, "family_name": family_name, "email": email}
        with world.transaction_services() as services:
            user = services.users.create(organization.id, CreateHumanUser.decode(person))
            if display_name:
                change = ChangeHumanUser.decode({"display_name": display_name})
                services.users.change(user.id, change, principal=Principal.OPERATOR)


def sorted_by(page: Any) -> dict[str, str]:
    return {item.get_text(): item["aria-sort"] for item in page.html.select("thead [aria-sort]")}


# --- new --------------------------------------------------------------------------------------------------------------


def test_new_user_gets_working_link(world: World, owner: Browser, organization: Organization) -> None:
    users(owner, organization)
    owner.click("New user")
    page = owner.submit(NEW, form="page-form")
    assert page.status_int == 200
    assert page.html.h1.get_text() == "User created"
    assert "It works once, for 7 days." in page
    assert "no-store" in page.headers["Cache-Control"]
    link = secret(owner)
    person = Browser(world)
    person.open(link)
    person.submit({"new_password": PASSWORD, "new_password_again": PASSWORD}, form="page-form")
    person.open("/console")
    person.sign_in(f"anna@{organization.primary_domain}")
    [created] = world.audit_events(event="user.created", organization_id=organization.id)[:1]
    assert link not in str(created)
    owner.click("I have handed it over")
    assert owner.page.html.h1.get_text() == "Anna Berg"
    # It is not shown again.
    assert link.rpartition("/")[2] not in owner.page


def test_new_user_gets_working_one_time_password(world: World, owner: Browser, organization: Organization) -> None:
    users(owner, organization, "/new")
    owner.submit({**NEW, "initial": "one_time_password"}, form="page-form")
    person = Browser(world)
    person.open("/account")
    person.sign_in(f"anna@{organization.primary_domain}", secret(owner))
    assert person.sign_in_step == "password/change"


def test_invalid_user_shows_errors_and_keeps_input(owner: Browser, organization: Organization) -> None:
    users(owner, organization, "/new")
    typed = {"user_name": "two words", "given_name": "", "family_name": "Berg", "email": "nothing"}
    page = owner.submit({**typed, "initial": "one_time_password"}, form="page-form")
    assert page.status_int == 422
    named = [f"#field-{name}" for name in ("user_name", "given_name", "email")]
    assert [item["href"] for item in page.html.select("#errors a")] == named
    assert "Enter a given name." in page
    form = page.forms["page-form"]
    assert {name: form[name].value for name in typed} == typed
    assert form["initial"].value == "one_time_password"


def test_duplicate_user_name_is_refused(
    world: World, owner: Browser, organization: Organization, anna: HumanUser
) -> None:
    users(owner, organization, "/new")
    page = owner.submit({**NEW, "user_name": anna.user_name}, form="page-form")
    assert page.status_int == 422
    assert "The organization already has a user with this name. Choose another." in page
    # The form's submission id is still unused.
    assert owner.submit({"user_name": "somebody-else"}, form="page-form").status_int == 200


# --- detail page ------------------------------------------------------------------------------------------------------


def test_user_page_shows_everything(world: World, owner: Browser, organization: Organization, anna: HumanUser) -> None:
    project = world.make_project(organization, roles=["reader"])
    world.make_user_grant(anna, project, "reader")
    world.assign_manager_role(anna, "ORG_USER_MANAGER")
    Browser(world, user_agent="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0").start_session(anna)
    text = ""
    for tab in ("", "/access", "/security", "/sessions", "/activity"):
        page = show(owner, anna, tab)
        assert page.html.h1.get_text() == "Ada Lovelace"
        assert len(page.html.select(".button--primary, .button--danger")) == 0
        assert [item["href"] for item in page.html.select(".tabs [aria-current]")] == [owner.path]
        text += page.html.main.get_text(" ", strip=True)
    for shown_text in (
        anna.id,
        "Active",
        "Firefox on Linux",
        "reader",
        project.name,
        "ORG_USER_MANAGER",
        organization.name,
    ):
        assert shown_text in text


# --- change -----------------------------------------------------------------------------------------------------------


def test_user_edit(world: World, owner: Browser, anna: HumanUser) -> None:
    show(owner, anna)
    owner.click("Change Ada Lovelace")
    page = owner.submit({"given_name": "Änne <b>", "email": "anna@example.com", "locale": "de"}, form="page-form")
    assert "The changes are saved." in page
    assert page.html.h1.get_text() == "Änne <b> Lovelace"
    profile = stored(world, anna).profile
    assert (profile.given_name, profile.email, profile.locale) == ("Änne <b>", "anna@example.com", "de")
    assert not profile.email_verified
    show(owner, anna, "/edit")
    page = owner.submit({"family_name": "", "zoneinfo": "Mars/Base", "nickname": "Addie"}, form="page-form")
    assert page.status_int == 422
    assert "Enter a family name." in page
    assert "Enter a time zone such as Europe/Berlin." in page
    assert page.forms["page-form"]["nickname"].value == "Addie"


# --- credentials ------------------------------------------------------------------------------------------------------


def test_password_link_ends_nothing_until_used(world: World, owner: Browser, anna: HumanUser) -> None:
    login_name = set_password(world, anna)
    show(owner, anna, "/security")
    owner.click("Create link")
    assert "Until the link is used" in owner.page
    page = owner.submit(form="page-form")
    assert page.status_int == 200
    link = secret(owner)
    assert link.startswith(f"{world.identity.settings.login_url}/password/reset/")
    person = Browser(world)
    person.open("/account")
    person.sign_in(login_name)
    assert person.path.startswith("/account")
    owner.click("I have handed it over")
    assert link not in owner.page


def test_one_time_password_replaces_password(world: World, owner: Browser, anna: HumanUser) -> None:
    login_name = set_password(world, anna)
    show(owner, anna, "/security")
    owner.click("Set password")
    owner.submit(form="page-form")
    password = secret(owner)
    person = Browser(world)
    person.open("/account")
    assert person.sign_in(login_name).status_int == 422
    person.sign_in(login_name, password)
    assert person.sign_in_step == "password/change"
    assert password not in str(list(world.all_audit_events()))


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_end_one_session(world: World, owner: Browser, anna: HumanUser) -> None:
    browser = Browser(world)
    browser.start_session(anna)
    other = Browser(world, user_agent="Mozilla/5.0 (iPhone) Safari/604.1")
    other.start_session(anna)
    show(owner, anna, "/sessions")
    owner.click("End … Firefox on Linux")
    assert "Sign Ada Lovelace out of Firefox on Linux?" in owner.page.html.h1.get_text()
    page = owner.submit(form="page-form")
    assert "Signed out." in page
    assert [item.get_text() for item in page.html.select(".table__name")] == ["Safari on iPhone"]
    browser.open("/account")
    assert browser.sign_in_step == ""
    other.open("/account")
    assert other.sign_in_step is None


def test_end_all_sessions(world: World, owner: Browser, anna: HumanUser) -> None:
    for _ in range(7):
        Browser(world).start_session(anna)
    show(owner, anna)
    owner.click("Sessions")
    assert len(owner.page.html.select("tbody tr")) == 7
    owner.click("End all sessions")
    assert "7 sessions end at once." in owner.page
    page = owner.submit(form="page-form")
    assert "Signed out." in page
    assert "The person is not signed in anywhere." in page


# --- mail -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def post() -> Iterator[ReceivingMailServer]:
    post = ReceivingMailServer()
    post.start()
    yield post
    post.stop()


@pytest.mark.storages("memory")  # Covers pages only.
def test_initial_credential_is_mailed(make_world: WorldFactory, post: ReceivingMailServer) -> None:
    world = make_world(**post.settings)
    organization = world.make_organization()
    manager = world.make_human_user(organization)
    world.assign_manager_role(manager, "ORG_OWNER")
    browser = Browser(world)
    browser.start_session(manager)
    users(browser, organization, "/new")
    browser.submit({**NEW, "email": "anna@example.com"}, form="page-form")
    assert "We have sent the link to anna@example.com. It is shown to nobody else." in browser.page
    assert "Hand over this" not in browser.page
    world.identity.senders["mail"].send_due()
    letter = post.pop_only_message()
    assert letter["To"] == "anna@example.com"
    link = extract_one_time_link(letter)
    assert link.rpartition("/")[2] not in browser.page
    text = " ".join(message_text(letter).split())
    assert f"{manager.display_name} invites you to {organization.name}." in text
    assert f"Your login name is anna@{organization.primary_domain}." in text
    # A handed-over link replaces the mailed one and is not mailed.
    browser.click("Create another link to hand over yourself")
    assert "It does not confirm the email address." in browser.page
    browser.submit(form="page-form")
    assert secret(browser) != link
    assert Browser(world).open(link).status_int == 410
    world.identity.senders["mail"].send_due()
    assert post.received_messages == []
    browser.click("I have handed it over")
    browser.click("Security")
    browser.click("Set password")
    browser.submit(form="page-form")
    assert "We have also sent it to anna@example.com." in browser.page
    world.identity.senders["mail"].send_due()
    assert secret(browser) in message_text(post.pop_only_message())
    # Without an email address nothing is mailed.
    users(browser, organization, "/new")
    browser.submit({**NEW, "user_name": "berta"}, form="page-form")
    assert "We have" not in browser.page
    assert secret(browser).startswith("https://")
    world.identity.senders["mail"].send_due()
    assert post.received_messages == []


# --- plugins ----------------------------------------------------------------------------------------------------------


@pytest.mark.storages("memory")  # Storage is not involved.
def test_plugins_add_user_sections(world: World, owner: Browser, anna: HumanUser) -> None:
    class Factors:
        @hookimpl
        def console_user_sections(self, principal: object, user: HumanUser) -> list[UserSection]:
            row = UserSectionRow(
                name="Phone", note="Since yesterday", action=NavigationItem(label="Remove", href=f"/codes/{user.id}")
            )
            return [UserSection(id="factors", title="Second factors", rows=(row,))]

    class Broken:
        @hookimpl
        def console_user_sections(self) -> list[UserSection]:
            raise RuntimeError("this plugin is broken")

    manager, plugins = world.identity.plugin_host._manager, (Factors(), Broken())
    for plugin in plugins:
        manager.register(plugin)
    page = show(owner, anna, "/security")
    for plugin in plugins:
        manager.unregister(plugin)
    assert page.status_int == 200
    assert re.sub(r"\s+", " ", page.html.find(id="factors").get_text(" ", strip=True)) == (
        "Second factors Phone Since yesterday Remove Phone"
    )
