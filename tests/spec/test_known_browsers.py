"""Security 10.4: under attack, an account stays usable in browsers in which its owner has signed in."""

from base64 import urlsafe_b64decode
from collections.abc import Callable
from secrets import token_bytes

import pytest

from identity.crypto.sealing import MasterKey, Sealer
from identity.domain.attempts import MAX_ATTEMPTS, MAX_DELAY
from identity.domain.users import HumanUser
from identity.testing.browser import PASSWORD, Browser
from identity.testing.jwt_assertions import base64url
from identity.testing.world import World
from tests.spec.password_attempts import at_password, enters, known, leave, lock, login_name, make_password_user, tried

# The storage contract tests the storages, and the journeys test races.
pytestmark = [pytest.mark.storages("memory"), pytest.mark.usefixtures("quick")]

HOLDS = "its password works only in a browser that has signed in to it before"


@pytest.fixture
def world(isolated_world: World) -> World:
    """An isolated world, because the clock moves and address limits are used up."""
    return isolated_world


@pytest.mark.thorough
def test_known_browser_is_not_locked_out_by_attacker(world: World, ada: HumanUser) -> None:
    laptop, stranger = known(world, ada), Browser(world)
    statuses = []
    for _ in range(2 * MAX_ATTEMPTS):
        statuses.append(tried(at_password(world, ada, stranger)))
        world.clock.advance(int(MAX_DELAY.total_seconds()))
    assert statuses == [422] * MAX_ATTEMPTS + [429] * MAX_ATTEMPTS
    fresh = at_password(world, ada)
    assert tried(fresh, PASSWORD) == 429
    assert "Retry-After" not in fresh.page.headers
    assert HOLDS in fresh.page.text
    assert '<a href="/password/reset">You can also choose a new password.</a>' in fresh.page.text
    at_password(world, ada, laptop)
    assert tried(laptop) == 422, "the owner may even mistype"
    assert enters(laptop)
    assert enters(fresh), "after a success there the password counts everywhere again"


def test_password_reset_ends_lockout(world: World, ada: HumanUser) -> None:
    lock(world, ada)
    link = world.operator_services.passwords.issue_reset_link(ada.id)
    browser = Browser(world)
    browser.open(link)
    browser.submit({"new_password": PASSWORD, "new_password_again": PASSWORD})
    at_password(world, ada, browser)
    assert enters(browser)


def test_known_browser_attempts_are_limited(world: World, ada: HumanUser) -> None:
    laptop = at_password(world, ada, known(world, ada))
    assert [tried(laptop) for _ in range(6)] == [422] * 5 + [429]
    assert tried(at_password(world, ada)) == 422, "and counted apart from strangers'"
    for name in (ada.user_name, ada.user_name.upper(), login_name(world, ada).upper()):
        laptop = at_password(world, name, laptop)
        assert tried(laptop) == 429, "under each of the names"


def cookies_of(browser: Browser) -> dict[str, str]:
    return {cookie.name: cookie.value for cookie in browser.cookies if cookie.name.startswith("__Host-known-")}


def test_known_browser_cookie_attributes(world: World, ada: HumanUser) -> None:
    laptop = known(world, ada)
    [name] = cookies_of(laptop)
    [cookie] = [cookie for cookie in laptop.cookies if cookie.name == name]
    assert (cookie.http_only, cookie.secure, cookie.same_site, cookie.path) == (True, True, "lax", "/")
    assert cookie.expires_at is not None
    assert (cookie.expires_at - world.clock()).days == 90
    assert ada.id not in f"{name}={cookie.value}"
    at_password(world, ada, laptop)
    tried(laptop, PASSWORD)
    assert len(cookies_of(laptop)) == 1
    assert name not in cookies_of(laptop), "a newer one takes its place"
    for name in cookies_of(laptop):
        laptop.cookies.delete(name)


def test_known_browser_accounts_are_bounded(world: World) -> None:
    laptop = Browser(world)
    for _ in range(13):
        person = make_password_user(world)
        leave(laptop)
        at_password(world, person, laptop)
        assert enters(laptop)
    cookies = cookies_of(laptop)
    assert len(cookies) == 10
    assert sum(len(f"{name}={value}; ") for name, value in cookies.items()) < 2500


def _put(browser: Browser, name: str, value: str) -> None:
    attributes = "Path=/; Secure; HttpOnly; SameSite=Lax"
    browser.cookies.store(browser.login_url, f"{name}={value}; {attributes}", browser.world.clock())


def _altered(change: Callable[[str, str, HumanUser], tuple[str, str]]) -> Callable[[World, Browser, HumanUser], None]:
    """Replaces the known-browser cookie."""

    def forge(world: World, browser: Browser, person: HumanUser) -> None:
        for name, value in cookies_of(browser).items():
            browser.cookies.delete(name)
            _put(browser, *change(name, value, person))

    return forge


def _flipped(name: str, value: str, person: HumanUser) -> tuple[str, str]:
    sealed = bytearray(urlsafe_b64decode(value + "=" * (-len(value) % 4)))
    sealed[-1] ^= 1
    return name, base64url(sealed)


def _of_another_account(world: World, browser: Browser, person: HumanUser) -> None:
    user = make_password_user(world)
    browser.cookies = known(world, user).cookies


def _expired(world: World, browser: Browser, person: HumanUser) -> None:
    cookies = cookies_of(browser)
    world.clock.advance(days=90)
    for name, value in cookies.items():
        _put(browser, name, value)


def _of_a_former_password(world: World, browser: Browser, person: HumanUser) -> None:
    world.clock.advance(1)
    with world.transaction_services() as services:
        services.passwords.reset(
            services.passwords.issue_reset_link(person.id).rpartition("/")[2], services.passwords.hash(PASSWORD)
        )


def _sealed_elsewhere(world: World, browser: Browser, person: HumanUser) -> None:
    """The cookie of another service, or from before the key was lost."""
    with world.read_only_services() as services:
        services.known_browsers._sealer = Sealer((MasterKey("1", token_bytes(32)),))
        name, text = services.known_browsers.remember(person.id)
    for former in cookies_of(browser):
        browser.cookies.delete(former)
    _put(browser, f"__Host-known-{name}", text)


FORGED: dict[str, Callable[[World, Browser, HumanUser], None]] = {
    "flipped": _altered(_flipped),
    "made up": _altered(lambda name, value, person: (name, base64url(f"{person.id} 0 9999999999".encode()))),
    "under another id": _altered(lambda name, value, _: (f"{name[:-1]}{'0' if name[-1] != '0' else '1'}", value)),
    "of another account": _of_another_account,
    "expired": _expired,
    "of a former password": _of_a_former_password,
    "sealed elsewhere": _sealed_elsewhere,
}


@pytest.mark.parametrize("forged", FORGED)
def test_foreign_cookie_does_not_make_browser_known(world: World, ada: HumanUser, forged: str) -> None:
    laptop = known(world, ada)
    FORGED[forged](world, laptop, ada)
    assert cookies_of(laptop)
    stranger = at_password(world, ada)
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]
    at_password(world, ada, laptop)
    assert tried(laptop, PASSWORD) == 429


def test_password_change_keeps_only_this_browser_known(world: World, ada: HumanUser) -> None:
    tablet, new = known(world, ada), "another fine long password"
    laptop = at_password(world, ada)
    tried(laptop, PASSWORD)
    world.clock.advance(1)
    laptop.open("/account/password")
    laptop.submit({"current_password": PASSWORD, "new_password": new, "new_password_again": new})
    assert "Your password is changed." in laptop.page.text
    leave(laptop)
    stranger = at_password(world, ada)
    assert [tried(stranger) for _ in range(6)] == [422] * 5 + [429]
    assert tried(at_password(world, ada, tablet), new) == 429
    assert enters(at_password(world, ada, laptop), new)
