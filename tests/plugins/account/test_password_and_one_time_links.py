"""Password change with the current password or a one-time link."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from identity.crypto.argon2id import hash_password
from identity.domain.users import HumanUser
from identity.password_hashing import PasswordHasher, ServerBusy
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import ACCOUNT_ORIGIN, NEW, OLD, make_user_with_password, sessions_of

# --- password ---------------------------------------------------------------------------------------------------------


def test_password_change(world: World, browser: Browser, ada: HumanUser) -> None:
    other_browser = Browser(world)
    other_browser.start_session(ada)
    tree = check_page(browser.open("/account/password"), 200, "Password")
    passwords = [item.attrib for item in tree.iter("input") if item.attrib.get("type") == "password"]
    kinds = {"current_password": "current-password"} | dict.fromkeys(
        ("new_password", "new_password_again"), "new-password"
    )
    assert {password["name"]: password["autocomplete"] for password in passwords} == kinds
    assert tree.find(".//input[@name='login_name']").attrib["autocomplete"] == "username"
    assert "all your other sessions end" in browser.page.text
    change_password(browser)
    assert browser.path == "/account/security"
    assert "Your password is changed. All your other sessions are ended." in browser.page.text
    assert len(sessions_of(world, ada)) == 1
    assert other_browser.open("/account").request.path.startswith("/login/")
    other_browser.sign_in(ada.user_name, NEW)
    assert other_browser.path == "/account/profile"
    # The message is shown once and only in this session.
    address, eve = browser.url, Browser(world)
    eve.start_session(world.make_human_user())
    assert "Your password is changed." not in eve.open(address).text
    world.clock.advance(60)
    assert "Your password is changed." not in browser.reload().text


def test_invalid_new_password_is_explained(world: World, browser: Browser, ada: HumanUser) -> None:
    name = ada.user_name.upper()
    for current, new, again, errors in (
        ("", "", "", {"current_password": "Enter your current password.", "new_password": "Enter a password."}),
        ("wrong", NEW, NEW, {"current_password": "This is not your current password."}),
        (OLD, "short", "short", {"new_password": "Use at least 15 characters; several words work well."}),
        (OLD, NEW, NEW + "!", {"new_password_again": "Type the same password twice."}),
        (OLD, name, name, {"new_password": "Do not use your user name."}),
    ):
        browser.open("/account/password")
        typed = {"current_password": current, "new_password": new, "new_password_again": again}
        tree = check_page(browser.submit(typed, form="page-form"), 422, "Password")
        for field, sentence in errors.items():
            assert sentence in "".join(tree.find(f".//*[@id='error-{field}']").itertext())
        links = [item.attrib["href"] for item in tree.find(".//*[@id='errors']").iter("a")]
        assert links == [f"#field-{error}" for error in errors]
        # Passwords are never sent back.
        assert all(not item or item not in browser.page.text for item in (new, again))
    fresh = Browser(world)
    fresh.open("/account")
    fresh.sign_in(ada.user_name, OLD)
    assert fresh.path == "/account/profile"


def test_concurrent_password_change_does_not_undo_reset(
    world: World, browser: Browser, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = world.identity.process_state.hasher.cost
    by_reset = hash_password("of the owner, by the link", cost=cost)

    def reset() -> None:
        with world.transaction_services() as services:
            services.passwords.reset(services.passwords.issue_reset_link(ada.id).rpartition("/")[2], by_reset)

    def hashed_slowly(_hasher: PasswordHasher, password: str) -> str:
        with ThreadPoolExecutor(1) as executor:
            executor.submit(reset).result(timeout=30)
        return hash_password(password, cost=cost)

    browser.open("/account/password")
    monkeypatch.setattr(PasswordHasher, "hash", hashed_slowly)
    new = {"new_password": "of somebody else", "new_password_again": "of somebody else"}
    browser.submit({"current_password": OLD, **new}, form="page-form")
    assert browser.page.status_int == 404
    with world.read_only_services() as services:
        password_hash = services.storage.users.find_password(ada.id)
    assert password_hash is not None
    assert password_hash.hash == by_reset


def test_password_change_attempts_are_rate_limited(world: World, browser: Browser, ada: HumanUser) -> None:
    for _ in range(5):
        change_password(browser, "wrong")
        assert browser.page.status_int == 422
    change_password(browser)
    assert browser.page.status_int == 429
    assert browser.page.headers["Retry-After"] == "1"
    assert "Too many attempts. Wait 1 second, then try again." in browser.page.text
    assert '<a href="/password/reset">You can also choose a new password.</a>' in browser.page.text
    world.clock.advance(1)
    change_password(browser)
    assert browser.path == "/account/security"
    assert "Your password is changed." in browser.page.text
    refused = [
        event.reason for event in world.audit_events(event="authentication.refused") if event.object_id == ada.id
    ]
    assert set(refused) == {"wrong password", "too many attempts at one account"}


def change_password(browser: Browser, current: str = OLD) -> None:
    browser.open("/account/password")
    new = {"new_password": NEW, "new_password_again": NEW}
    browser.submit({"current_password": current, **new}, form="page-form")


@pytest.mark.storages("memory")
def test_busy_server_shows_retry_message(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise ServerBusy

    monkeypatch.setattr(PasswordHasher, "hash", busy)
    change_password(browser)
    assert browser.page.status_int == 503
    assert browser.page.headers["Retry-After"] == "5"
    assert "We are busy just now." in browser.page.text


# --- one-time links without mail --------------------------------------------------------------------------------------


def test_password_reset_without_mail_names_contact(world: World) -> None:
    browser = Browser(world)
    check_page(browser.open("/password/reset"), 200, "Choose a new password")
    assert "Ask a manager of your organization for a link." in browser.page.text
    assert not browser.page.forms
    answer = browser.post_form("/password/reset", {"login_name": "ada"}, initiator=ACCOUNT_ORIGIN)
    assert (answer.status_int, answer.text) == (200, browser.open("/password/reset").text)
    assert browser.open("/password/reset/sent").request.path == "/password/reset"


def issue_password_link(world: World, person: HumanUser) -> str:
    with world.transaction_services() as services:
        return services.passwords.issue_reset_link(person.id)


def test_one_time_link_of_manager_sets_password(world: World, ada: HumanUser) -> None:
    link = issue_password_link(world, ada)
    browser = Browser(world)
    tree = check_page(browser.open(link), 200, "Choose a new password")
    assert f"{ada.user_name}@" in browser.page.text
    assert tree.find(".//input[@name='login_name']").attrib["autocomplete"] == "username"
    check_page(
        browser.submit({"new_password": NEW, "new_password_again": "x"}, form="page-form"), 422, "Choose a new password"
    )
    assert NEW not in browser.page.text
    # The link is still valid.
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    check_page(browser.page, 200, "Your password is changed")
    check_page(Browser(world).open(link), 410, "This link no longer works")


def test_one_time_link_is_bound_to_its_purpose(world: World, ada: HumanUser) -> None:
    code = issue_password_link(world, ada).rpartition("/")[2]
    for path in (f"/email/{code}", f"/register/{code}", f"/password/reset/{code}x"):
        tree = check_page(Browser(world).open(path), 410, "This link no longer works")
        assert code not in "".join(tree.itertext())
    assert Browser(world).open(f"/password/reset/{code}").status_int == 200
    with world.transaction_services() as services:
        services.storage.users.update(replace(ada, active=False, version=ada.version + 1))
    assert Browser(world).open(f"/password/reset/{code}").status_int == 410


def test_one_time_link_works_in_another_users_session(world: World, browser: Browser, ada: HumanUser) -> None:
    grace = make_user_with_password(world)
    browser.open(issue_password_link(world, grace))
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.path == "/password/changed"
    assert len(sessions_of(world, ada)) == 1


def test_one_time_link_page_keeps_language(world: World, ada: HumanUser) -> None:
    browser = Browser(world)
    browser.open(issue_password_link(world, ada))
    browser.submit(button=("ui_locales", "de"), form="page-form")
    assert '<html lang="de">' in browser.page.text
    browser.submit({"new_password": NEW, "new_password_again": NEW}, form="page-form")
    assert browser.url.endswith("/password/changed?ui_locales=de")
    assert '<html lang="de">' in browser.page.text
