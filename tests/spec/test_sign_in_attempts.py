"""Password attempts (security 10.3, 10.4): only verified failures count, and known browsers are never locked out."""

import re
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from identity.domain.attempts import MAX_ATTEMPTS, MAX_DELAY
from identity.domain.users import HumanUser
from identity.password_hashing import PasswordHasher, ServerBusy
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.spec.password_attempts import at_password, enters, leave, lock, login_name, make_password_user, tried

# The storage contract tests the storages, and the journeys test races; these tests go through all layers.
pytestmark = [pytest.mark.storages("memory"), pytest.mark.usefixtures("quick")]
everywhere = pytest.mark.every_storage

HOLDS = "its password works only in a browser that has signed in to it before"


@pytest.fixture
def world(isolated_world: World) -> World:
    """An isolated world, because the clock moves and address limits are used up."""
    return isolated_world


# --- successes --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_successful_sign_ins_do_not_exhaust_address_limit(world: World) -> None:
    """A hundred and fifty correct passwords within ten minutes from one address, some mistyped at first."""
    office = Browser(world).address
    people = [make_password_user(world) for _ in range(5)]
    for number in range(150):
        browser = Browser(world)
        browser.address = office
        at_password(world, people[number % 5], browser)
        if number % 10 == 0:
            assert tried(browser) == 422
        assert enters(browser), f"the sign-in number {number} was answered {browser.page.status}"


@pytest.mark.thorough
@everywhere
def test_success_resets_account_failures(world: World, ada: HumanUser) -> None:
    browser = at_password(world, ada)
    for _ in range(4):
        assert tried(browser) == 422
    assert enters(browser)
    stranger = at_password(world, ada)
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]


def test_success_returns_its_attempt_only(make_world: WorldFactory) -> None:
    """Signing in to an own account allows no more guesses at others."""
    world = make_world(**{"identity.attempts_per_address": "3"})
    mine = make_password_user(world)
    stranger = at_password(world, mine)
    statuses = []
    for number in range(6):
        at_password(world, f"somebody-{number}", stranger)
        statuses.append(tried(stranger))
        at_password(world, mine, stranger)
        tried(stranger, PASSWORD)
        leave(stranger)
    assert statuses == [422] * 3 + [429] * 3


# --- rate-limited attempts --------------------------------------------------------------------------------------------


@everywhere
def test_rate_limited_attempt_is_not_counted(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.attempts_per_address": "10"})
    browser = at_password(world, "ada")
    assert [tried(browser) for _ in range(5)] == [422] * 5
    assert [tried(browser) for _ in range(12)] == [429] * 12
    assert browser.page.headers["Retry-After"] == "1", "the delay did not grow"
    at_password(world, "grace", browser)
    assert [tried(browser) for _ in range(5)] == [422] * 5, "nor did the address have ten failures"
    at_password(world, "edith", browser)
    assert [tried(browser) for _ in range(3)] == [429] * 3
    assert "Too many sign-ins from your network just now." in browser.page.text
    world.clock.advance(minutes=10)
    assert [tried(browser) for _ in range(6)] == [422] * 5 + [429], "what the address refused did not count for Edith"


@pytest.mark.thorough
@everywhere
def test_unverified_attempt_is_not_counted(world: World, ada: HumanUser, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, **__: object) -> None:
        raise ServerBusy

    browser = at_password(world, ada)
    with monkeypatch.context() as patched:
        patched.setattr(PasswordHasher, "verify", busy)
        assert [tried(browser) for _ in range(20)] == [503] * 20
    assert [tried(browser) for _ in range(6)] == [422] * 5 + [429]


def test_unfinished_attempt_counts_as_failure(world: World, ada: HumanUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies between reserving the attempt and verifying the password."""

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    browser = at_password(world, ada)
    with monkeypatch.context() as patched:
        patched.setattr(PasswordHasher, "verify", die)
        for _ in range(5):
            with pytest.raises(Killed):
                tried(browser)
    assert tried(browser, PASSWORD) == 429
    world.clock.advance(1)
    assert enters(browser)


# --- names ------------------------------------------------------------------------------------------------------------


def _rename(world: World, person: HumanUser, user_name: str) -> None:
    world.operator_services.users.change(person.id, ChangeHumanUser(user_name=user_name))


def _another(world: World, before: HumanUser) -> HumanUser:
    """Another user, who now has the name."""
    command = CreateHumanUser(user_name=before.user_name, given_name="A", family_name="B")
    person = world.operator_services.users.create(before.organization_id, command)
    set_password(world, person)
    return person


def _renamed_away(world: World, person: HumanUser) -> HumanUser:
    _rename(world, person, f"{person.user_name}-before")
    return _another(world, person)


def _removed(world: World, person: HumanUser) -> HumanUser:
    world.operator_services.users.remove(person.id)
    return _another(world, person)


def _renamed_to(world: World, person: HumanUser) -> HumanUser:
    """The name belonged to no account when an attacker tried it."""
    name = person.user_name
    _rename(world, person, f"{name}-before")
    stranger = Browser(world)
    at_password(world, f"{name}@{login_name(world, person).partition('@')[2]}", stranger)
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]
    another = make_password_user(world, world.operator_services.organizations.get(person.organization_id))
    _rename(world, another, name)
    return another


@everywhere
@pytest.mark.sampled(4)
@pytest.mark.parametrize("goes", [_renamed_away, _removed, _renamed_to])
@pytest.mark.parametrize("bare", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_reassigned_name_has_no_failures(
    world: World, ada: HumanUser, goes: Callable[[World, HumanUser], HumanUser], bare: bool
) -> None:
    """Security 18.3."""
    lock(world, ada)
    stranger = at_password(world, ada.user_name if bare else login_name(world, ada))
    assert [tried(stranger) for _ in range(6)][-1] == 429
    heir = goes(world, ada)
    assert login_name(world, heir).startswith(f"{ada.user_name}@")
    browser = at_password(world, ada.user_name if bare else login_name(world, heir))
    assert enters(browser)
    with world.read_only_services() as services:
        assert services.users.count_failed_attempts(heir.id) == 0


@pytest.mark.thorough
@everywhere
def test_lockout_follows_account_across_renames(world: World, ada: HumanUser) -> None:
    grace = make_password_user(world, world.operator_services.organizations.get(ada.organization_id))
    lock(world, ada)
    ada_name, grace_name = ada.user_name, grace.user_name
    # The two users swap their names.
    _rename(world, ada, "meanwhile")
    _rename(world, grace, ada_name)
    _rename(world, ada, grace_name)
    browser = at_password(world, ada)
    assert tried(browser, PASSWORD) == 422, "what is right is not looked at"
    with world.read_only_services() as services:
        assert (services.users.count_failed_attempts(ada.id), services.users.count_failed_attempts(grace.id)) == (
            MAX_ATTEMPTS,
            0,
        )
    browser = at_password(world, grace)
    assert enters(browser)


def spellings(name: str, domain: str) -> dict[str, str]:
    """Different spellings of one login name."""
    full = f"{name}@{domain}"
    wide = "".join(chr(ord(item) + 0xFEE0) if "!" <= item <= "~" else item for item in full)
    return {
        "bare": name,
        "bare upper": name.upper(),
        "bare spaced": f"  {name}\t",
        "bare decomposed": unicodedata.normalize("NFD", name),
        "bare wide": wide[: len(name)],
        "full": full,
        "full upper": full.upper(),
        "full spaced": f" {full} ",
        "spaced within": f"{name} @ {domain}",
        "full decomposed": unicodedata.normalize("NFD", full),
        "full wide": wide,
        "wide at": f"{name}＠{domain}",
        "wide domain": f"{name}@{wide[len(name) + 1 :]}",
        "elsewhere": f"{name}@nowhere.example",
        "twice": f"{full}@{domain}",
    }


SPELLINGS = tuple(spellings("x", "y"))


@pytest.mark.sampled(5, thorough=12)
@pytest.mark.parametrize("second", SPELLINGS)
@pytest.mark.parametrize(
    "first", ["bare", *(pytest.param(item, marks=pytest.mark.thorough) for item in ("full", "wide at"))]
)
def test_shared_counts_of_spellings_do_not_reveal_accounts(world_cache: Any, first: str, second: str) -> None:
    """Security 10.4: known and unknown names get the same responses."""
    world = world_cache.shared_world("memory", {})
    organization = world.make_organization()
    command = CreateHumanUser(user_name=f"jür.{organization.id[-6:]}", given_name="J", family_name="B")
    person = world.operator_services.users.create(organization.id, command)
    set_password(world, person)
    sequences = []
    for name in (person.user_name, f"nob{person.user_name[1:]}"):
        spelt = spellings(name, organization.primary_domain)
        browser = Browser(world)
        sequence = []
        for which, times in ((first, 4), (second, 4), (first, 4), (second, 2)):
            at_password(world, spelt[which], browser)
            for _ in range(times):
                tried(browser)
                sequence.append(_responses(browser, *spelt.values()))
        sequences.append(sequence)
    assert sequences[0] == sequences[1]


def _responses(browser: Browser, *names: str) -> tuple[str, str | None, str]:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", browser.page.text)
    text = re.sub(r'name="csrf_token" value="[^"]*"', "TOKEN", text)
    text = re.sub(r'name="ticket" value="[^"]*"|challenge&#34;: &#34;[^&]*', "CHALLENGE", text)
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name.strip(), "NAME").replace(quote(name.strip()), "NAME")
    return browser.page.status, browser.page.headers.get("Retry-After"), text


def test_bare_and_full_name_share_a_count(world: World) -> None:
    """Even if no user has the name: the organization is known, and so is its domain."""
    project = world.make_project()
    organization = world.operator_services.storage.organizations.find(project.organization_id)
    party = RelyingParty.register(world, project_id=project.id)
    person = make_password_user(world, organization)
    for name in (person.user_name, f"no{person.user_name}"):
        statuses = []
        for spelt in (name, f"{name}@{organization.primary_domain}"):
            browser = Browser(world)
            browser.open(party.new_request().url, initiator=party.origin)
            browser.submit({"login_name": spelt})
            statuses.extend(tried(browser) for _ in range(3))
        assert statuses == [422] * 5 + [429]


def test_second_name_gives_no_more_attempts(world: World, ada: HumanUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Input beyond the account's limit is reported as wrong without verification."""
    looked_at = []
    verify = PasswordHasher.verify

    def watch(self: PasswordHasher, stored: str | None, password: str, **options: Any) -> Any:
        looked_at.append(stored is not None)
        return verify(self, stored, password, **options)

    monkeypatch.setattr(PasswordHasher, "verify", watch)
    statuses = []
    for name in (ada.user_name, login_name(world, ada)):
        stranger = at_password(world, name)
        statuses.append([tried(stranger) for _ in range(4)])
    assert statuses == [[422] * 4] * 2
    assert looked_at == [True] * 5 + [False] * 3, "three cost a hash that compares with nothing"
    assert tried(at_password(world, ada), PASSWORD) == 422


@pytest.mark.thorough
def test_unknown_names_are_locked_like_known_ones(world: World, ada: HumanUser) -> None:
    for name in (login_name(world, ada), "nobody@nowhere.example"):
        stranger = Browser(world)
        for _ in range(MAX_ATTEMPTS):
            assert tried(at_password(world, name, stranger)) == 422
            world.clock.advance(int(MAX_DELAY.total_seconds()))
    world.clock.advance(days=365)
    world.identity.background_jobs.purge()
    for name in (login_name(world, ada), "nobody@nowhere.example"):
        fresh = at_password(world, name)
        assert tried(fresh) == 429
        assert HOLDS in fresh.page.text


def test_failures_expire(world: World, ada: HumanUser) -> None:
    answers = []
    for name in (login_name(world, ada), "nobody@nowhere.example"):
        stranger = at_password(world, name)
        answers.append([tried(stranger) for _ in range(6)])
    assert answers == [[422] * 5 + [429]] * 2
    for days, expected in ((29, [422, 429]), (32, [422] * 5 + [429])):
        world.clock.advance(days=days)
        world.identity.background_jobs.purge()
        for name in (login_name(world, ada), "nobody@nowhere.example"):
            stranger = at_password(world, name)
            assert [tried(stranger) for _ in expected] == expected, (days, name)


# --- addresses --------------------------------------------------------------------------------------------------------


ALL = 8


def failures_until_held(world: World, address: str) -> int:
    """The number of names that can be tried from an address; ALL if the test reaches no limit."""
    for number in range(ALL):
        browser = Browser(world)
        browser.address = address
        if tried(at_password(world, f"name-{number}-{address}", browser)) == 429:
            assert "Too many sign-ins from your network just now." in browser.page.text
            return number
    return ALL


@pytest.mark.shows("8.3")
@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("0", ALL)])
def test_address_limit_is_a_setting(make_world: WorldFactory, setting: str, expected: int) -> None:
    world = make_world(**{"identity.attempts_per_address": setting})
    assert failures_until_held(world, "192.0.2.7") == expected
    assert failures_until_held(world, "192.0.2.8") == expected
    world.clock.advance(minutes=10)
    assert failures_until_held(world, "192.0.2.7") == expected


def test_ipv6_network_counts_as_one_address(make_world: WorldFactory) -> None:
    """A client on one network has 2^64 addresses."""
    world = make_world(**{"identity.attempts_per_address": "3"})
    assert failures_until_held(world, "2001:db8:1:2::1") == 3
    assert failures_until_held(world, "2001:db8:1:2:ffff::2") == 0
    assert failures_until_held(world, "2001:db8:1:3::1") == 3
    assert failures_until_held(world, "::ffff:192.0.2.7") == 3
    assert failures_until_held(world, "192.0.2.7") == 0


def test_proxy_without_forwarded_address_is_not_limited(make_world: WorldFactory) -> None:
    """Otherwise the failures of one attacker would block all users."""
    world = make_world(**{"identity.attempts_per_address": "3", "identity.trusted_proxy": "10.0.0.2"})
    assert failures_until_held(world, "10.0.0.2") == ALL
    assert failures_until_held(world, "127.0.0.1") == 3


# --- a manager's unlock -----------------------------------------------------------------------------------------------


@everywhere
def test_manager_unlocks_an_account(world: World, ada: HumanUser) -> None:
    lock(world, ada)
    organization = world.operator_services.storage.organizations.find(ada.organization_id)
    manager = world.make_human_user(organization)
    world.assign_manager_role(manager, "ORG_USER_MANAGER")
    console = Browser(world)
    console.start_session(manager)
    console.open(f"/console/users/{ada.id}/security")
    assert "Locked" in console.page.text
    console.click("Unlock …")
    assert "Unlock the user" in console.page.text
    console.submit()
    assert "User unlocked. The password works in every browser again." in console.page.text
    assert "Locked" not in console.page.text
    [event] = world.audit_events(event="user.unlocked")
    assert (event.object_id, event.actor.id) == (ada.id, manager.id)
    fresh = at_password(world, ada)
    assert enters(fresh)
