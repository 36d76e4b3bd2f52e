"""Activity of the account, and account recovery after an unknown sign-in."""

import re

import pytest

from identity.domain.audit import Actor, ActorKind, AuditEvent
from identity.domain.users import HumanUser
from identity.pages.account_extensions import SecuritySection, SecuritySectionRow
from identity.pages.layout import NavigationItem
from identity.services.access_control import Principal
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.commands.users import ChangeHumanUser, ChangeProfile
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import (
    ACCOUNT_ORIGIN,
    NEW,
    OLD,
    login_name_of,
    make_user_with_password,
    sessions_of,
    token_of,
)

NOT_ME = "/account/activity/not-me"


def rows_of(browser: Browser) -> list[str]:
    tree = check_page(browser.open("/account/activity"), 200, "Activity")
    table = tree.find(".//tbody")
    return [] if table is None else [" ".join("".join(item.itertext()).split()) for item in table.iter("tr")]


def events_of(world: World, person: HumanUser, name: str) -> list[AuditEvent]:
    return [event for event in world.audit_events(event=name) if event.object_id == person.id]


# --- list -------------------------------------------------------------------------------------------------------------


def test_activity_lists_own_and_others_events_at_the_account(world: World, ada: HumanUser) -> None:
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(ada.user_name, "wrong")
    browser.submit({"password": OLD}, form="page-form")
    manager = Actor(kind=ActorKind.USER, id="0192f3a7-5b1e-7c44-9d0e-3f2a8b61c7d5", client_address="198.51.100.7")
    with world.identity.transaction(manager) as services:
        services.users.change(ada.id, ChangeHumanUser(given_name="Augusta"), principal=Principal.OPERATOR)
    changed, signed_in, refused = rows_of(browser)[:3]
    assert "User changed" in changed
    assert "By a manager" in changed
    assert "198.51.100.7" not in changed
    assert "Not me" not in changed
    assert signed_in.startswith("Signed in")
    assert "Firefox on Linux" in signed_in
    assert "Not me" in signed_in
    assert refused.startswith("Sign-in refused")
    assert "The password was wrong." in refused
    assert "Firefox on Linux" in refused
    assert "Not me" in refused


def test_refused_sign_in_is_reported(world: World, browser: Browser, ada: HumanUser) -> None:
    stranger = Browser(world)
    stranger.open("/account")
    stranger.sign_in(ada.user_name, "wrong")
    rows_of(browser)
    browser.click("Not me … Sign-in refused")
    browser.submit(form="page-form")
    [refused] = events_of(world, ada, "authentication.refused")
    [reported] = events_of(world, ada, "user.reported")
    assert reported.detail == {"event_id": refused.id}


def test_times_use_profile_language_and_zone(world: World, ada: HumanUser) -> None:
    """Without script, times use the zone of the profile, otherwise UTC, and name it."""
    for zone, abbreviation in (("", "UTC"), ("Asia/Kathmandu", "UTC+0545"), ("Europe/Berlin", "CE")):
        with world.transaction_services() as services:
            command = ChangeProfile.build(given_name="Ada", family_name="Lovelace", zoneinfo=zone)
            services.users.change_profile(ada.id, command)
        for language, pattern in (
            ("en", r"[A-Z]\w\w \d+, \d{4} \d+:\d\d.[AP]M"),
            ("de", r"\d\d\.\d\d\.\d{4} \d\d:\d\d"),
        ):
            browser = Browser(world, languages=language)
            browser.start_session(ada)
            time = browser.open("/account/activity").html.select_one("tbody time")
            assert re.fullmatch(rf"{pattern} {re.escape(abbreviation)}\w*", time.get_text()), time
            # Script converts to the browser's zone only if the profile has none.
            assert time.has_attr("data-local") is not bool(zone)
            assert time["title"].endswith(" UTC")


def test_activity_lists_roles_assigned_by_others(world: World, browser: Browser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        organization = services.organizations.get(ada.organization_id)
    project = world.make_project(organization, roles=["reader", "writer"])
    with world.transaction_services() as services:
        command = AddUserGrant(user_id=ada.id, project_id=project.id, roles=frozenset({"reader"}))
        grant = services.user_grants.add(command, principal=Principal.OPERATOR)
        services.user_grants.change(
            grant.id, ChangeUserGrant(roles=frozenset({"writer"})), principal=Principal.OPERATOR
        )
        services.user_grants.remove(grant.id, principal=Principal.OPERATOR)
    listed = rows_of(browser)
    for label in (
        "Project roles granted to a user",
        "Project roles of a user changed",
        "Project roles removed from a user",
    ):
        assert any(item.startswith(label) and "By the people who run this service" in item for item in listed), label


def test_activity_names_the_application(world: World, browser: Browser, ada: HumanUser) -> None:
    party = RelyingParty.register(world)
    fresh = Browser(world)
    fresh.open(party.new_request().url, initiator=party.origin)
    fresh.sign_in(login_name_of(world, ada), OLD)
    if fresh.sign_in_step == "consent":
        fresh.submit(form="page-form")
    with world.read_only_services() as services:
        client = services.applications.find_client(party.client_id)
    assert client is not None
    assert any(item.startswith("Signed in") and client.application.name in item for item in rows_of(browser))


def test_activity_omits_events_of_other_users(world: World, browser: Browser, ada: HumanUser) -> None:
    before = len(rows_of(browser))
    other = Browser(world)
    eve = make_user_with_password(world)
    other.open("/account")
    other.sign_in(eve.user_name, OLD)
    assert len(rows_of(browser)) == before
    assert eve.user_name not in browser.page.text


def test_activity_is_paged(world: World, browser: Browser, ada: HumanUser) -> None:
    for number in range(30):
        with world.transaction_services() as services:
            command = ChangeHumanUser(given_name=f"Ada {number}")
            services.users.change(ada.id, command, principal=Principal.OPERATOR)
    assert len(rows_of(browser)) == 25
    browser.click("Next page")
    assert browser.page.status_int == 200
    assert "User changed" in browser.page.text
    browser.click("First page")
    assert browser.path == "/account/activity"


@pytest.mark.storages("memory")
def test_activity_cursor_of_another_user_discloses_nothing(world: World, browser: Browser) -> None:
    """The cursor contains a position and no user."""
    eve, other = make_user_with_password(world), Browser(world)
    other.start_session(eve)
    for number in range(30):
        with world.transaction_services() as services:
            services.users.change(eve.id, ChangeHumanUser(given_name=f"Eve {number}"), principal=Principal.OPERATOR)
    rows_of(other)
    other.click("Next page")
    answer = browser.open(other.url)
    assert "User changed" not in answer.text


# --- account recovery -------------------------------------------------------------------------------------------------


def test_recover_account_ends_sessions_and_requires_new_password(
    world: World, browser: Browser, ada: HumanUser
) -> None:
    thief = Browser(world)
    thief.start_session(ada)
    issued_authorization = world.make_authorization(
        ada, world.make_web_application(), scope=("openid", "offline_access")
    )
    with world.transaction_services() as services:
        link = services.passwords.issue_reset_link(ada.id)
    browser.open(NOT_ME)
    browser.submit(form="page-form")
    # The next step is the password, and it cannot be skipped.
    assert browser.sign_in_step == "password"
    assert sessions_of(world, ada) == ()
    assert thief.open("/account").request.path.startswith("/login/")
    assert browser.open("/account").request.path.startswith("/login/")
    assert world.client.fetch_userinfo(issued_authorization.access_token).status_int == 401
    assert Browser(world).open(link).status_int == 410
    browser.sign_in(ada.user_name, OLD)
    assert browser.sign_in_step == "password/change"
    browser.submit({"new_password": OLD, "new_password_again": OLD}, form="page-form")
    assert browser.page.status_int == 422
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.path == "/account/profile"
    [event] = events_of(world, ada, "user.reported")
    assert (event.actor.id, event.object_id) == (ada.id, ada.id)


def test_account_recovery_requires_current_password(world: World, browser: Browser, ada: HumanUser) -> None:
    """A thief of the session only signs themselves out; the owner continues with the current password."""
    browser.open(NOT_ME)
    browser.submit(form="page-form")
    browser.submit({"password": NEW}, form="page-form")
    assert browser.page.status_int == 422
    owner = Browser(world)
    owner.open("/account")
    owner.sign_in(ada.user_name, OLD)
    assert owner.sign_in_step == "password/change"


def test_recovery_page_names_the_event(world: World, browser: Browser, ada: HumanUser) -> None:
    fresh = Browser(world)
    fresh.open("/account")
    fresh.sign_in(ada.user_name, OLD)
    rows_of(browser)
    started = events_of(world, ada, "session.started")[0]
    browser.open(f"{NOT_ME}?event={started.id}")
    assert "<strong>Signed in</strong>" in browser.page.text
    browser.submit(form="page-form")
    [event] = events_of(world, ada, "user.reported")
    assert event.detail == {"event_id": started.id}


def test_recovery_page_of_other_users_event_is_404(world: World, browser: Browser, ada: HumanUser) -> None:
    eve, other = make_user_with_password(world), Browser(world)
    other.open("/account")
    other.sign_in(eve.user_name, OLD)
    [event] = events_of(world, eve, "session.started")
    token, pages = token_of(browser), set()
    for event_id in (event.id, "0192f3a7-5b1e-7c44-9d0e-3f2a8b61c7d5", "x", "%00"):
        for answer in (
            browser.open(f"{NOT_ME}?event={event_id}"),
            browser.post_form(f"{NOT_ME}?event={event_id}", {"csrf_token": token}, initiator=ACCOUNT_ORIGIN),
        ):
            assert answer.status_int == 404
            pages.add(re.sub(r"<code>[0-9a-f-]{36}</code>|\?[^\"]*ui_locales", "", answer.text))
    assert len(pages) == 1
    assert len(sessions_of(world, ada)) == 1


def test_recovery_page_get_changes_nothing(world: World, browser: Browser, ada: HumanUser) -> None:
    browser.open(NOT_ME)
    assert len(sessions_of(world, ada)) == 1
    assert events_of(world, ada, "user.reported") == []


# --- security ---------------------------------------------------------------------------------------------------------


def test_security_page_lists_methods_and_access(world: World, browser: Browser, ada: HumanUser) -> None:
    Browser(world).start_session(ada)
    world.make_authorization(ada, world.make_web_application())
    check_page(browser.open("/account/security"), 200, "Security")
    assert "Signed in to 2 browsers" in browser.page.text
    assert "1 connected application" in browser.page.text
    browser.click("Change … Password")
    assert browser.path == "/account/password"


@pytest.mark.storages("memory")
def test_security_page_shows_plugin_sections(world: World, browser: Browser) -> None:
    item = NavigationItem(label="Unlink", href="/upstream/1/unlink")
    row = SecuritySectionRow(name="Example <b>", notes=("anna@example.org",), actions=(item,))
    pages = world.app.registry.pages
    pages.security_sections.append(
        lambda page: (
            SecuritySection(id="linked", title=page.translator.gettext("Sessions"), rows=(row,), empty="None"),
        )
    )
    tree = check_page(browser.open("/account/security"), 200, "Security")
    section = tree.find(".//*[@id='linked']")
    assert "Example <b>" in "".join(section.itertext())
    assert section.find(".//a").attrib["href"] == "/upstream/1/unlink"
