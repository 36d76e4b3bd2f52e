"""Attempts at passwords (security 10.3, 10.4): only failures that were looked at count, and nobody is kept out of their
own browser by a stranger."""

import re
import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache
from secrets import token_bytes
from typing import Any
from urllib.parse import quote

import pytest

from identity.crypto.passwords import Verdict
from identity.crypto.sealing import MasterKey, Sealer
from identity.domain.attempts import LONGEST_DELAY, MOST_ATTEMPTS
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.hashing import Busy, Hasher
from identity.services.access import THE_OPERATOR
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

# What stores have to do is in their contract, and raced in the journeys; here a few go through all of it.
pytestmark = pytest.mark.storages("memory")
everywhere = pytest.mark.every_storage

WRONG = "wrong"
HOLDS = "can be entered with its password only in a browser that signed in to it before"


@pytest.fixture
def world(own_world: World) -> World:
    """Of its own: clocks move, and addresses are used up."""
    return own_world


@pytest.fixture
def ada(world: World) -> HumanUser:
    person = world.a_person()
    give_password(world, person)
    return person


def login_name(world: World, person: HumanUser) -> str:
    with world.reading() as services:
        subject = services.storage.users.find_subject(person.id)
    assert subject is not None
    return subject.login_name


def at_password(world: World, name: str, browser: Browser | None = None) -> Browser:
    """A browser, by default one that nobody has seen, at the page that asks for the password."""
    browser = browser or Browser(world)
    browser.open("/login")
    if "password" not in browser.form("page-form").fields:
        browser.submit({"login_name": name}, form="page-form")
    return browser


def tried(browser: Browser, password: str = WRONG) -> int:
    return int(browser.submit({"password": password}, form="page-form").status_int)


def signed_in(browser: Browser) -> bool:
    return browser.path.startswith("/account")


def known(world: World, person: HumanUser) -> Browser:
    """A browser at which the person signed in and out again."""
    browser = at_password(world, login_name(world, person))
    tried(browser, PASSWORD)
    assert signed_in(browser)
    for name in browser.session_cookies:
        browser.cookies.forget(name)
    return browser


def cookies_of(browser: Browser) -> dict[str, str]:
    return {one.name: one.value for one in browser.cookies if one.name.startswith("__Host-known-")}


def lock(world: World, person: HumanUser) -> None:
    """A stranger guesses until there is no next attempt."""
    for _ in range(MOST_ATTEMPTS):
        with world.transaction() as services:
            services.attempts.reserve(login_name(world, person), services.storage.users.find_subject(person.id), None)
        world.clock.advance(int(LONGEST_DELAY.total_seconds()))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of passwords without hundreds of hashes."""
    verify, no = cache(Hasher.verify), Verdict(matches=False, outdated=False)
    monkeypatch.setattr(Hasher, "verify", lambda *asked: no if WRONG in asked else verify(*asked))


# --- successes --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_an_office_behind_one_address_signs_in_all_day(world: World) -> None:
    """A hundred and fifty right passwords within ten minutes from one address, some typed wrong at first."""
    office = Browser(world).address
    people = [world.a_person() for _ in range(5)]
    for person in people:
        give_password(world, person)
    for number in range(150):
        browser = Browser(world)
        browser.address = office
        at_password(world, login_name(world, people[number % 5]), browser)
        if number % 10 == 0:
            assert tried(browser) == 422
        tried(browser, PASSWORD)
        assert signed_in(browser), f"the sign-in number {number} was answered {browser.page.status}"


@everywhere
def test_a_success_counts_nothing_and_clears_the_account(world: World, ada: HumanUser) -> None:
    browser = at_password(world, login_name(world, ada))
    for _ in range(4):
        assert tried(browser) == 422
    tried(browser, PASSWORD)
    assert signed_in(browser)
    stranger = at_password(world, login_name(world, ada))
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]


def test_a_success_gives_back_its_own_attempt_alone(make_world: MakeWorld) -> None:
    """Whoever has an account here does not get more guesses at others by signing in to it between."""
    world = make_world(**{"identity.attempts_per_address": "3"})
    mine = world.a_person()
    give_password(world, mine)
    stranger = at_password(world, login_name(world, mine))
    statuses = []
    for number in range(6):
        at_password(world, f"somebody-{number}", stranger)
        statuses.append(tried(stranger))
        at_password(world, login_name(world, mine), stranger)
        tried(stranger, PASSWORD)
        for name in stranger.session_cookies:
            stranger.cookies.forget(name)
    assert statuses == [422] * 3 + [429] * 3


# --- what is refused unseen -------------------------------------------------------------------------------------------


@everywhere
def test_what_was_refused_unseen_does_not_count(make_world: MakeWorld) -> None:
    world = make_world(**{"identity.attempts_per_address": "10"})
    browser = at_password(world, "ada")
    assert [tried(browser) for _ in range(5)] == [422] * 5
    assert [tried(browser) for _ in range(50)] == [429] * 50
    assert browser.page.headers["Retry-After"] == "1", "the delay did not grow"
    at_password(world, "grace", browser)
    assert [tried(browser) for _ in range(5)] == [422] * 5, "nor did the address have ten failures"
    at_password(world, "edith", browser)
    assert [tried(browser) for _ in range(3)] == [429] * 3
    assert "Too many sign-ins from your network just now." in browser.page.text
    world.clock.advance(minutes=10)
    assert [tried(browser) for _ in range(6)] == [422] * 5 + [429], "what the address refused did not count for Edith"


@everywhere
def test_what_nobody_had_time_to_look_at_does_not_count(
    world: World, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise Busy

    browser = at_password(world, login_name(world, ada))
    with monkeypatch.context() as patched:
        patched.setattr(Hasher, "verify", busy)
        assert [tried(browser) for _ in range(20)] == [503] * 20
    assert [tried(browser) for _ in range(6)] == [422] * 5 + [429]


def test_an_attempt_without_a_verdict_stands_as_a_failure(
    world: World, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between reserving and looking."""

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    browser = at_password(world, login_name(world, ada))
    with monkeypatch.context() as patched:
        patched.setattr(Hasher, "verify", die)
        for _ in range(5):
            with pytest.raises(Killed):
                tried(browser)
            world.identity.transactions.abort()
    assert tried(browser, PASSWORD) == 429
    world.clock.advance(1)
    tried(browser, PASSWORD)
    assert signed_in(browser)


# --- the owner's own browser ------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_stranger_does_not_keep_the_owner_out(world: World, ada: HumanUser) -> None:
    laptop, stranger = known(world, ada), Browser(world)
    statuses = []
    for _ in range(2 * MOST_ATTEMPTS):
        statuses.append(tried(at_password(world, login_name(world, ada), stranger)))
        world.clock.advance(int(LONGEST_DELAY.total_seconds()))
    assert statuses == [422] * MOST_ATTEMPTS + [429] * MOST_ATTEMPTS
    fresh = at_password(world, login_name(world, ada))
    assert tried(fresh, PASSWORD) == 429
    assert "Retry-After" not in fresh.page.headers
    assert HOLDS in fresh.page.text
    assert '<a href="/password/reset">You can also choose a new password.</a>' in fresh.page.text
    at_password(world, login_name(world, ada), laptop)
    assert tried(laptop) == 422, "the owner may even mistype"
    tried(laptop, PASSWORD)
    assert signed_in(laptop)
    tried(fresh, PASSWORD)
    assert signed_in(fresh), "after a success there the password counts everywhere again"


def test_a_reset_ends_it(world: World, ada: HumanUser) -> None:
    lock(world, ada)
    with world.transaction() as services:
        link = services.passwords.issue_link(ada.id)
    browser = Browser(world)
    browser.open(link)
    browser.submit({"new_password": PASSWORD, "new_password_again": PASSWORD}, form="page-form")
    at_password(world, login_name(world, ada), browser)
    tried(browser, PASSWORD)
    assert signed_in(browser)


def test_guesses_at_the_owners_browser_are_limited_too(world: World, ada: HumanUser) -> None:
    laptop = at_password(world, login_name(world, ada), known(world, ada))
    assert [tried(laptop) for _ in range(6)] == [422] * 5 + [429]
    assert tried(at_password(world, login_name(world, ada))) == 422, "and counted apart from strangers'"
    for name in (ada.user_name, ada.user_name.upper(), login_name(world, ada).upper()):
        laptop = at_password(world, name, laptop)
        assert tried(laptop) == 429, "under each of the names"


def test_the_cookie_of_a_known_browser(world: World, ada: HumanUser) -> None:
    laptop = known(world, ada)
    [name] = cookies_of(laptop)
    [cookie] = [one for one in laptop.cookies if one.name == name]
    assert (cookie.http_only, cookie.secure, cookie.same_site, cookie.path) == (True, True, "lax", "/")
    assert cookie.ends_at is not None
    assert (cookie.ends_at - world.clock()).days == 90
    assert ada.id not in f"{name}={cookie.value}"
    at_password(world, login_name(world, ada), laptop)
    tried(laptop, PASSWORD)
    assert len(cookies_of(laptop)) == 1
    assert name not in cookies_of(laptop), "a newer one takes its place"
    for name in cookies_of(laptop):
        laptop.cookies.forget(name)


def test_a_browser_remembers_a_bounded_number_of_accounts(world: World) -> None:
    laptop = Browser(world)
    for _ in range(13):
        person = world.a_person()
        give_password(world, person)
        for name in laptop.session_cookies:
            laptop.cookies.forget(name)
        at_password(world, login_name(world, person), laptop)
        tried(laptop, PASSWORD)
        assert signed_in(laptop)
    shown = cookies_of(laptop)
    assert len(shown) == 10
    assert sum(len(f"{name}={value}; ") for name, value in shown.items()) < 2500


Forge = Callable[[World, Browser, HumanUser], None]


def _put(browser: Browser, name: str, value: str) -> None:
    browser.cookies.store(
        browser.login_url, f"{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax", browser.world.clock()
    )


def _flipped(world: World, browser: Browser, person: HumanUser) -> None:
    for name, value in cookies_of(browser).items():
        sealed = bytearray(urlsafe_b64decode(value + "=" * (-len(value) % 4)))
        sealed[-1] ^= 1
        _put(browser, name, urlsafe_b64encode(sealed).decode().rstrip("="))


def _made_up(world: World, browser: Browser, person: HumanUser) -> None:
    for name in cookies_of(browser):
        _put(browser, name, urlsafe_b64encode(f"{person.id} 0 9999999999".encode()).decode().rstrip("="))


def _under_another_id(world: World, browser: Browser, person: HumanUser) -> None:
    for name, value in cookies_of(browser).items():
        browser.cookies.forget(name)
        _put(browser, f"{name[:-1]}{'0' if name[-1] != '0' else '1'}", value)


def _of_another_account(world: World, browser: Browser, person: HumanUser) -> None:
    other = world.a_person()
    give_password(world, other)
    browser.cookies = known(world, other).cookies


def _expired(world: World, browser: Browser, person: HumanUser) -> None:
    shown = cookies_of(browser)
    world.clock.advance(days=90)
    for name, value in shown.items():
        _put(browser, name, value)


def _of_a_former_password(world: World, browser: Browser, person: HumanUser) -> None:
    world.clock.advance(1)
    with world.transaction() as services:
        services.passwords.reset(
            services.passwords.issue_link(person.id).rpartition("/")[2], services.passwords.hash(PASSWORD)
        )


def _sealed_elsewhere(world: World, browser: Browser, person: HumanUser) -> None:
    """By another service, or before its key was lost."""
    with world.reading() as services:
        services.known_browsers._sealer = Sealer((MasterKey("1", token_bytes(32)),))
        name, text = services.known_browsers.remember(person.id)
    for former in cookies_of(browser):
        browser.cookies.forget(former)
    _put(browser, f"__Host-known-{name}", text)


@pytest.mark.parametrize(
    "forge",
    [_flipped, _made_up, _under_another_id, _of_another_account, _expired, _of_a_former_password, _sealed_elsewhere],
    ids=lambda forge: str(forge.__name__),
)
def test_no_other_cookie_makes_a_browser_known(world: World, ada: HumanUser, forge: Forge) -> None:
    laptop = known(world, ada)
    forge(world, laptop, ada)
    assert cookies_of(laptop)
    stranger = at_password(world, login_name(world, ada))
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]
    at_password(world, login_name(world, ada), laptop)
    assert tried(laptop, PASSWORD) == 429


def test_a_new_password_on_the_account_page_keeps_this_browser_and_no_other(world: World, ada: HumanUser) -> None:
    tablet, new = known(world, ada), "another fine long password"
    laptop = at_password(world, login_name(world, ada))
    tried(laptop, PASSWORD)
    world.clock.advance(1)
    laptop.open("/account/password")
    laptop.submit({"current_password": PASSWORD, "new_password": new, "new_password_again": new}, form="page-form")
    assert "Your password is changed." in laptop.page.text
    for name in laptop.session_cookies:
        laptop.cookies.forget(name)
    stranger = at_password(world, login_name(world, ada))
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]
    assert tried(at_password(world, login_name(world, ada), tablet), new) == 429
    tried(at_password(world, login_name(world, ada), laptop), new)
    assert signed_in(laptop)


# --- names ------------------------------------------------------------------------------------------------------------


def _rename(world: World, person: HumanUser, user_name: str) -> None:
    with world.transaction() as services:
        services.users.change(person.id, ChangeHumanUser(user_name=user_name), by=THE_OPERATOR)


def _another(world: World, before: HumanUser) -> HumanUser:
    """Somebody else who has the name now."""
    with world.transaction() as services:
        command = CreateHumanUser(user_name=before.user_name, given_name="A", family_name="B")
        person = services.users.create(before.organization_id, command)
    give_password(world, person)
    return person


def _renamed_away(world: World, person: HumanUser) -> HumanUser:
    _rename(world, person, f"{person.user_name}-before")
    return _another(world, person)


def _removed(world: World, person: HumanUser) -> HumanUser:
    with world.transaction() as services:
        services.users.remove(person.id, by=THE_OPERATOR)
    return _another(world, person)


def _renamed_to(world: World, person: HumanUser) -> HumanUser:
    """The name was not even somebody's, and strangers had tried it."""
    name = person.user_name
    _rename(world, person, f"{name}-before")
    stranger = Browser(world)
    at_password(world, f"{name}@{login_name(world, person).partition('@')[2]}", stranger)
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]
    another = world.a_person(organization_of(world, person))
    give_password(world, another)
    _rename(world, another, name)
    return another


def organization_of(world: World, person: HumanUser) -> Organization:
    with world.reading() as services:
        return services.organizations.get(person.organization_id)


@everywhere
@pytest.mark.parametrize("goes", [_renamed_away, _removed, _renamed_to])
@pytest.mark.parametrize("bare", [True, False])
def test_a_name_that_changes_hands_brings_no_failures(
    world: World, ada: HumanUser, goes: Callable[[World, HumanUser], HumanUser], bare: bool
) -> None:
    """Security 18.3."""
    lock(world, ada)
    stranger = at_password(world, ada.user_name if bare else login_name(world, ada))
    assert [tried(stranger) for _ in range(6)][-1] == 429
    heir = goes(world, ada)
    assert login_name(world, heir).startswith(f"{ada.user_name}@")
    browser = at_password(world, ada.user_name if bare else login_name(world, heir))
    tried(browser, PASSWORD)
    assert signed_in(browser)
    with world.reading() as services:
        assert services.users.failures(heir.id) == 0


@everywhere
def test_a_locked_account_stays_locked_under_another_name_and_no_other_is(world: World, ada: HumanUser) -> None:
    grace = world.a_person(organization_of(world, ada))
    give_password(world, grace)
    lock(world, ada)
    theirs, hers = ada.user_name, grace.user_name
    # They swap their names.
    _rename(world, ada, "meanwhile")
    _rename(world, grace, theirs)
    _rename(world, ada, hers)
    browser = at_password(world, login_name(world, ada))
    assert tried(browser, PASSWORD) == 422, "what is right is not looked at"
    with world.reading() as services:
        assert (services.users.failures(ada.id), services.users.failures(grace.id)) == (MOST_ATTEMPTS, 0)
    browser = at_password(world, login_name(world, grace))
    tried(browser, PASSWORD)
    assert signed_in(browser)


def spellings(name: str, domain: str) -> dict[str, str]:
    """One login name in many spellings."""
    full = f"{name}@{domain}"
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in full)
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


@pytest.mark.parametrize("second", SPELLINGS)
@pytest.mark.parametrize(
    "first", ["bare", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("full", "wide at"))]
)
def test_which_spellings_share_a_count_tells_nothing(worlds: Any, first: str, second: str) -> None:
    """Security 10.4: the same answers for a name that somebody has and one that nobody has."""
    world = worlds.shared("memory", {})
    organization = world.an_organization()
    with world.transaction() as services:
        command = CreateHumanUser(user_name=f"jür.{organization.id[-6:]}", given_name="J", family_name="B")
        person = services.users.create(organization.id, command)
    give_password(world, person)
    sequences = []
    for name in (person.user_name, f"nob{person.user_name[1:]}"):
        spelt = spellings(name, organization.primary_domain)
        browser = Browser(world)
        sequence = []
        for which, times in ((first, 4), (second, 4), (first, 4), (second, 2)):
            at_password(world, spelt[which], browser)
            for _ in range(times):
                tried(browser)
                sequence.append(_told(browser, *spelt.values()))
        sequences.append(sequence)
    assert sequences[0] == sequences[1]


def _told(browser: Browser, *names: str) -> tuple[str, str | None, str]:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", browser.page.text)
    text = re.sub(r'name="csrf_token" value="[^"]*"', "TOKEN", text)
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name.strip(), "NAME").replace(quote(name.strip()), "NAME")
    return browser.page.status, browser.page.headers.get("Retry-After"), text


def test_at_an_application_the_bare_name_is_the_full_one_of_its_organization(world: World) -> None:
    """Whether or not anybody has it: the organization in question is known, and so is its domain."""
    project = world.a_project()
    with world.reading() as services:
        organization = services.storage.organizations.find(project.organization_id)
    assert organization is not None
    party = RelyingParty.of(world, project_id=project.id)
    person = world.a_person(organization)
    give_password(world, person)
    for name in (person.user_name, f"no{person.user_name}"):
        statuses = []
        for spelt in (name, f"{name}@{organization.primary_domain}"):
            browser = Browser(world)
            browser.open(party.ask().url, by=party.origin)
            browser.submit({"login_name": spelt}, form="page-form")
            statuses.extend(tried(browser) for _ in range(3))
        assert statuses == [422] * 5 + [429]


def test_an_account_has_no_more_attempts_by_having_two_names(
    world: World, ada: HumanUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is typed beyond the account's own limit looks wrong, and is not looked at."""
    looked_at = []
    verify = Hasher.verify

    def watch(self: Hasher, stored: str | None, password: str) -> Any:
        looked_at.append(stored is not None)
        return verify(self, stored, password)

    monkeypatch.setattr(Hasher, "verify", watch)
    statuses = []
    for name in (ada.user_name, login_name(world, ada)):
        stranger = at_password(world, name)
        statuses.append([tried(stranger) for _ in range(4)])
    assert statuses == [[422] * 4] * 2
    assert looked_at == [True] * 5 + [False] * 3, "three cost a hash that compares with nothing"
    assert tried(at_password(world, login_name(world, ada)), PASSWORD) == 422


@pytest.mark.thorough
def test_unknown_names_are_locked_as_long_as_known_ones(world: World, ada: HumanUser) -> None:
    for name in (login_name(world, ada), "nobody@nowhere.example"):
        stranger = Browser(world)
        for _ in range(MOST_ATTEMPTS):
            assert tried(at_password(world, name, stranger)) == 422
            world.clock.advance(int(LONGEST_DELAY.total_seconds()))
    world.clock.advance(days=365)
    world.identity.jobs.purge()
    for name in (login_name(world, ada), "nobody@nowhere.example"):
        fresh = at_password(world, name)
        assert tried(fresh) == 429
        assert HOLDS in fresh.page.text


def test_fewer_failures_are_forgotten_after_the_same_time(world: World, ada: HumanUser) -> None:
    answers = []
    for name in (login_name(world, ada), "nobody@nowhere.example"):
        stranger = at_password(world, name)
        answers.append([tried(stranger) for _ in range(6)])
    assert answers == [[422] * 5 + [429]] * 2
    for days, expected in ((29, [422, 429]), (32, [422] * 5 + [429])):
        world.clock.advance(days=days)
        world.identity.jobs.purge()
        for name in (login_name(world, ada), "nobody@nowhere.example"):
            stranger = at_password(world, name)
            assert [tried(stranger) for _ in expected] == expected, (days, name)


# --- addresses --------------------------------------------------------------------------------------------------------


def failures_until_held(world: World, address: str) -> int:
    """How many names can be tried from an address; 20 for all."""
    for number in range(20):
        browser = Browser(world)
        browser.address = address
        if tried(at_password(world, f"name-{number}-{address}", browser)) == 429:
            assert "Too many sign-ins from your network just now." in browser.page.text
            return number
    return 20


@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("0", 20)])
def test_the_limit_of_an_address_is_a_setting(make_world: MakeWorld, setting: str, expected: int) -> None:
    world = make_world(**{"identity.attempts_per_address": setting})
    assert failures_until_held(world, "192.0.2.7") == expected
    assert failures_until_held(world, "192.0.2.8") == expected
    world.clock.advance(minutes=10)
    assert failures_until_held(world, "192.0.2.7") == expected


def test_a_network_of_ipv6_is_one_address(make_world: MakeWorld) -> None:
    """Whoever has one address of it has 2^64."""
    world = make_world(**{"identity.attempts_per_address": "3"})
    assert failures_until_held(world, "2001:db8:1:2::1") == 3
    assert failures_until_held(world, "2001:db8:1:2:ffff::2") == 0
    assert failures_until_held(world, "2001:db8:1:3::1") == 3
    assert failures_until_held(world, "::ffff:192.0.2.7") == 3
    assert failures_until_held(world, "192.0.2.7") == 0


def test_a_proxy_that_does_not_say_for_whom_it_speaks_is_nobody(make_world: MakeWorld) -> None:
    """Otherwise one stranger's failures would hold up everybody."""
    world = make_world(**{"identity.attempts_per_address": "3", "identity.trusted_proxy": "10.0.0.2"})
    assert failures_until_held(world, "10.0.0.2") == 20
    assert failures_until_held(world, "127.0.0.1") == 3


# --- a manager's unlock -----------------------------------------------------------------------------------------------


@everywhere
def test_a_manager_unlocks_an_account(world: World, ada: HumanUser) -> None:
    lock(world, ada)
    with world.reading() as services:
        organization = services.storage.organizations.find(ada.organization_id)
    manager = world.a_person(organization)
    world.make_manager(manager, "ORG_USER_MANAGER")
    console = Browser(world)
    console.start_session(manager)
    console.open(f"/console/users/{ada.id}")
    assert "Locked" in console.page.text
    console.click("Unlock …")
    assert "Unlock the user" in console.page.text
    console.submit(form="page-form")
    assert "User unlocked. The password counts in every browser again." in console.page.text
    assert "Locked" not in console.page.text
    [event] = world.audit_events(event="user.unlocked")
    assert (event.object_id, event.actor.id) == (ada.id, manager.id)
    fresh = at_password(world, login_name(world, ada))
    tried(fresh, PASSWORD)
    assert signed_in(fresh)
