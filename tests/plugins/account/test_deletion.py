"""Account deletion: access ends at once, the account after two weeks; until then the user can cancel."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import pytest

from identity.domain.errors import Conflict, NotFound
from identity.domain.legal_holds import LegalHoldKind
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser, Subject
from identity.provider.factor import Factor
from identity.services.access_control import Principal
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.users import ChangeHumanUser
from identity.services.container import Services
from identity.services.policies import INSTANCE_OWNER_ID as OF_ALL
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.account.conftest import (
    ACCOUNT_ORIGIN,
    OLD,
    login_name_of,
    make_user_with_password,
    sessions_of,
    stored,
    token_of,
)

DELETE = "/account/data/delete"


def allow(world: World, allowed: bool | None, owner: str = OF_ALL) -> None:
    with world.transaction_services() as services:
        services.policies.change(owner, ChangePolicy(account_deletion=allowed))


@pytest.fixture(autouse=True)
def policy(world: World) -> Iterator[None]:
    allow(world, True)
    yield
    allow(world, None)


def subject_of(services: Services, person: HumanUser) -> Subject:
    subject = services.storage.users.find_subject(person.id)
    if subject is None:
        raise NotFound("user", person.id)
    return subject


def request_deletion(browser: Browser, name: str) -> None:
    browser.open(DELETE)
    browser.submit({"confirm_name": name}, form="page-form")


def sign_in_with_pending_deletion(world: World, person: HumanUser) -> Browser:
    """A browser after the correct password of an account with pending deletion."""
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(login_name_of(world, person), OLD)
    assert browser.sign_in_step == "keep"
    return browser


def delete_due_users(world: World) -> None:
    world.identity.background_jobs.delete_due_accounts()


def user_exists(world: World, person: HumanUser) -> bool:
    try:
        stored(world, person)
    except NotFound:
        return False
    return True


# --- request ----------------------------------------------------------------------------------------------------------


def test_deletion_ends_access_at_once_and_account_after_two_weeks(
    world: World, browser: Browser, ada: HumanUser
) -> None:
    other_browser = Browser(world)
    other_browser.start_session(ada)
    issued_authorization = world.make_authorization(
        ada, world.make_web_application(), scope=("openid", "offline_access")
    )
    check_page(browser.open(DELETE), 200, "Delete your account?")
    browser.submit({"confirm_name": ada.user_name}, form="page-form")
    assert browser.path == "/leaving"
    assert not browser.session_cookies
    assert sessions_of(world, ada) == ()
    assert other_browser.open("/account").request.path.startswith("/login/")
    assert world.client.fetch_userinfo(issued_authorization.access_token).status_int == 401
    assert stored(world, ada).active
    world.clock.advance(days=13, hours=23)
    delete_due_users(world)
    assert user_exists(world, ada)
    world.clock.advance(hours=1)
    delete_due_users(world)
    assert not user_exists(world, ada)
    events = [event for event in world.audit_events(event="user.removed") if event.object_id == ada.id]
    assert [event.actor.kind.value for event in events] == ["system"]


def test_deletion_requires_login_name(world: World, browser: Browser, ada: HumanUser) -> None:
    for typed in ("", "somebody", ada.user_name + "x"):
        request_deletion(browser, typed)
        assert browser.page.status_int == 422
    assert stored(world, ada).deletion_at is None
    assert len(sessions_of(world, ada)) == 1


def test_sensitive_action_requires_recent_sign_in(world: World, browser: Browser, ada: HumanUser) -> None:
    token = token_of(browser)
    world.clock.advance(minutes=10)
    browser.post_form(DELETE, {"csrf_token": token, "confirm_name": ada.user_name}, initiator=ACCOUNT_ORIGIN)
    assert browser.sign_in_step == "password"
    assert stored(world, ada).deletion_at is None


@pytest.mark.parametrize("level", ["instance", "organization"])
def test_deletion_page_is_404_without_policy(world: World, browser: Browser, ada: HumanUser, level: str) -> None:
    if level == "instance":
        allow(world, None)
    else:
        allow(world, False, ada.organization_id)
    world.clock.advance(seconds=10)
    assert "Delete your account" not in browser.open("/account/data").text
    assert browser.open(DELETE).status_int == 404
    sent = {"csrf_token": token_of(browser), "confirm_name": ada.user_name}
    assert browser.post_form(DELETE, sent, initiator=ACCOUNT_ORIGIN).status_int == 404
    assert stored(world, ada).deletion_at is None


def test_organization_cannot_allow_deletion_against_instance(world: World, browser: Browser, ada: HumanUser) -> None:
    allow(world, True, ada.organization_id)
    allow(world, None)
    world.clock.advance(seconds=10)
    assert browser.open(DELETE).status_int == 404


# --- cancellation -----------------------------------------------------------------------------------------------------


def test_sign_in_offers_to_cancel_deletion(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    again = sign_in_with_pending_deletion(world, ada)
    check_page(again.page, 200, "Keep your account?")
    assert sessions_of(world, ada) == (), "nobody is signed in by looking"
    again.submit(form="page-form")
    assert again.path == "/account/profile"
    assert stored(world, ada).deletion_at is None
    world.clock.advance(days=15)
    delete_due_users(world)
    assert user_exists(world, ada)


def test_cancel_deletion_page_cannot_be_skipped(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    again = sign_in_with_pending_deletion(world, ada)
    request_id = again.path.split("/")[2]
    for path in ("/account", "/account/profile", f"/oauth/v2/authorize/{request_id}"):
        again.open(path)
        assert again.path.startswith("/login/"), path
    assert sessions_of(world, ada) == ()


def test_pending_deletion_issues_no_tokens(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    party = RelyingParty.register(world)
    fresh = Browser(world)
    fresh.open(party.new_request().url, initiator=party.origin)
    fresh.sign_in(login_name_of(world, ada), OLD)
    assert fresh.sign_in_step == "keep"
    assert fresh.external_redirect is None


def test_cancel_deletion_is_bound_to_its_browser(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    again = sign_in_with_pending_deletion(world, ada)
    stranger = Browser(world)
    answer = stranger.open(again.path)
    assert answer.status_int >= 400
    assert stored(world, ada).deletion_at is not None


def test_cancel_deletion_requires_authentication(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    other = Browser(world)
    other.open("/account")
    request_id = other.path.split("/")[2]
    other.submit({"login_name": login_name_of(world, ada)}, form="page-form")
    form = other.find_form("page-form")
    other.open(f"/login/{request_id}/keep")
    assert "/keep" not in other.path
    answer = other.post_form(
        f"/login/{request_id}/keep", {"csrf_token": form["csrf_token"].value}, initiator=ACCOUNT_ORIGIN
    )
    assert answer.status_int == 200
    assert stored(world, ada).deletion_at is not None


class FactorPager(Factor):
    """A factor that these tests never prove."""

    name, label, hint, methods = "pager", "Pager", "A pager.", ("otp",)


@pytest.mark.storages("memory")
def test_cancel_deletion_requires_second_factor(
    world: World, browser: Browser, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(world.identity.protocol_registry.factors, "pager", FactorPager())  # type: ignore[arg-type]
    request_deletion(browser, ada.user_name)
    with world.transaction_services() as services:
        services.factors.enrol(subject_of(services, ada), "pager", {}, name="Phone")
    other = Browser(world)
    other.open("/account")
    other.submit({"login_name": login_name_of(world, ada)}, form="page-form")
    token = other.find_form("page-form")["csrf_token"].value
    other.submit({"password": OLD}, form="page-form")
    assert other.sign_in_step == "pager"
    request_id = other.path.split("/")[2]
    other.post_form(f"/login/{request_id}/keep", {"csrf_token": token}, initiator=ACCOUNT_ORIGIN)
    assert other.sign_in_step == "pager"
    assert stored(world, ada).deletion_at is not None


def test_manager_cancels_deletion(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    manager, desk = make_user_with_password(world), Browser(world)
    world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
    desk.start_session(manager)
    desk.open(f"/console/users/{ada.id}")
    assert "Deletion pending" in desk.page.text
    desk.click("Keep …")
    desk.submit(form="page-form")
    assert "The account stays." in desk.page.text
    assert stored(world, ada).deletion_at is None
    assert "Keep …" not in desk.page.text


# --- other changes and restrictions -----------------------------------------------------------------------------------


def test_user_change_keeps_deletion_date(world: World, browser: Browser, ada: HumanUser) -> None:
    request_deletion(browser, ada.user_name)
    before = stored(world, ada).deletion_at
    with world.transaction_services() as services:
        services.users.change(ada.id, ChangeHumanUser(given_name="Augusta"), principal=Principal.OPERATOR)
        services.sessions.revoke_access(services.storage.users.find_subject(ada.id))  # type: ignore[arg-type]
    assert stored(world, ada).deletion_at == before


@pytest.mark.storages("memory")
def test_last_owner_cannot_be_deleted(isolated_world: World) -> None:
    world = isolated_world
    allow(world, True)
    with world.transaction_services() as services:
        owner, *managers = services.storage.managers.lock_by_role(Resource.INSTANCE.key, "IAM_OWNER")
        for manager in managers:
            services.storage.managers.delete(manager.id)
        person = services.users.get(owner.user_id)
    set_password(world, person, OLD)
    browser = Browser(world)
    browser.start_session(person)
    request_deletion(browser, person.user_name)
    assert browser.page.status_int == 409
    assert "This is the last active IAM_OWNER." in browser.page.text
    assert stored(world, person).deletion_at is None
    assert len(sessions_of(world, person)) == 1

    # This also applies if the user became the last owner meanwhile.
    with world.transaction_services() as services:
        services.storage.managers.delete(owner.id)
    request_deletion(browser, person.user_name)
    assert browser.path == "/leaving"
    with world.transaction_services() as services:
        services.storage.managers.add(owner)
    world.clock.advance(days=14)
    delete_due_users(world)
    assert stored(world, person).deletion_at is None
    with world.transaction_services() as services:
        for manager in managers:
            services.storage.managers.add(manager)


def test_legal_hold_blocks_account_deletion(world: World, browser: Browser, ada: HumanUser) -> None:
    """Also if the hold was placed after the request. No page discloses the hold or its reason."""
    command = CreateLegalHold(kind=LegalHoldKind.USER, held_id=ada.id, reason="Case 12/2027")
    with world.transaction_services() as services:
        hold = services.legal_holds.create(command)
    request_deletion(browser, ada.user_name)
    assert browser.page.status_int == 409
    assert "This account is under a legal hold and cannot be deleted." in browser.page.text
    assert stored(world, ada).deletion_at is None
    assert "Legal hold" not in browser.open("/account/activity").text
    with world.transaction_services() as services:
        services.legal_holds.release(hold.id)
    request_deletion(browser, ada.user_name)
    assert browser.path == "/leaving"
    with world.transaction_services() as services:
        hold = services.legal_holds.create(command)
    world.clock.advance(days=14)
    delete_due_users(world)
    assert user_exists(world, ada)
    with world.transaction_services() as services:
        services.legal_holds.release(hold.id)
    world.clock.advance(days=1)
    delete_due_users(world)
    assert not user_exists(world, ada)


# --- concurrency ------------------------------------------------------------------------------------------------------


@pytest.mark.storages("sqlite", "postgresql")
def test_concurrent_cancel_and_deletion_are_exclusive(world: World) -> None:
    people = [make_user_with_password(world) for _ in range(8)]
    for user in people:
        with world.transaction_services() as services:
            services.account_deletions.schedule(subject_of(services, user))
    world.clock.advance(days=14)
    for user in people:
        start = Barrier(2)

        def keep(target: HumanUser = user, start: Barrier = start) -> bool:
            start.wait(timeout=30)
            with suppress(NotFound, Conflict), world.transaction_services() as services:
                services.account_deletions.cancel_own(subject_of(services, target))
                return True
            return False

        def delete(target: HumanUser = user, start: Barrier = start) -> bool:
            start.wait(timeout=30)
            with suppress(NotFound, Conflict), world.transaction_services() as services:
                return services.account_deletions.delete_account(target.id)
            return False

        with ThreadPoolExecutor(2) as threads:
            future, deleted = (threads.submit(act) for act in (keep, delete))
            outcome = (future.result(timeout=60), deleted.result(timeout=60))
        assert outcome in ((True, False), (False, True)), outcome
        assert user_exists(world, user) is outcome[0]


@pytest.mark.storages("sqlite", "postgresql")
def test_concurrent_password_change_survives_account_recovery(world: World, ada: HumanUser) -> None:
    """Account recovery writes only its flag, not the password hash that it read."""
    for number in range(6):
        start, new = Barrier(2), f"hash {number}"

        def change(start: Barrier = start, new: str = new) -> None:
            start.wait(timeout=30)
            with world.transaction_services() as services:
                services.passwords.change(subject_of(services, ada), new)

        def report(start: Barrier = start) -> None:
            start.wait(timeout=30)
            with world.transaction_services() as services:
                services.account_recovery.report_compromise(subject_of(services, ada))

        with ThreadPoolExecutor(2) as threads:
            for future in [threads.submit(act) for act in (change, report)]:
                future.result(timeout=60)
        with world.read_only_services() as services:
            password = services.storage.users.find_password(ada.id)
        assert password is not None
        assert password.hash == new
