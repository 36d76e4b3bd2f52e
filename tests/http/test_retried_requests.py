"""A request that the database has run again does not repeat what it has committed."""

import pyotp
import pytest

from identity.domain.attempts import FREE_ATTEMPTS
from identity.domain.permissions import INSTANCE
from identity.hashing import Hasher
from identity.http.requests import IdentityRequest
from identity.testing.browser import PASSWORD, Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.http.contention import contend
from tests.plugins.factors.test_races import at_the_page, has
from tests.plugins.login.conftest import Person, opened
from tests.plugins.login.test_new_passwords import NEW
from tests.plugins.management.estate import Api

pytestmark = pytest.mark.storages("memory")

#: The first commit succeeds, so what it holds must not be repeated; the next two lose.
SUCCEEDS_THEN_LOSES_TWICE = (True, False, False)


@pytest.fixture
def contended(own_world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Outcomes of the next commits of the world: False loses."""
    return contend(own_world, monkeypatch)


def test_right_password_counts_as_one_attempt(own_world: World, contended: list[bool]) -> None:
    person, browser = Person(own_world), Browser(own_world)
    opened(browser, RelyingParty.of(own_world))
    browser.submit({"login_name": person.login_name})
    for _ in range(FREE_ATTEMPTS - 1):
        assert browser.submit({"password": "wrong"}).status_int == 422
    contended.extend(SUCCEEDS_THEN_LOSES_TWICE)
    browser.submit({"password": PASSWORD})
    assert browser.left_for is not None, browser.page
    assert contended == []


def test_right_code_counts_as_one_attempt(own_world: World, contended: list[bool]) -> None:
    person, secret = Person(own_world), pyotp.random_base32()
    has(own_world, person, "totp", {"secret": secret, "step": 0})
    browser = at_the_page(own_world, RelyingParty.of(own_world), person, "totp")
    for _ in range(FREE_ATTEMPTS - 1):
        assert browser.submit({"code": "000000"}).status_int == 422
    contended.extend(SUCCEEDS_THEN_LOSES_TWICE)
    browser.submit({"code": pyotp.TOTP(secret).at(own_world.clock())})
    assert browser.left_for is not None, browser.page
    assert contended == []


def test_registration_counts_once_by_address(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(**{"identity.attempts_per_address": "1"})
    browser, outcomes = Browser(world), contend(world, monkeypatch)
    opened(browser, RelyingParty.of(world), prompt="create")
    outcomes.extend(SUCCEEDS_THEN_LOSES_TWICE)
    browser.submit(NEW, form="page-form")
    assert browser.step == "registered", browser.page
    assert outcomes == []


def test_current_password_is_verified_once(
    own_world: World, contended: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, browser, verified = own_world.a_person(), Browser(own_world), []
    give_password(own_world, person, PASSWORD)
    browser.start_session(person)
    browser.open("/account/password")
    verify = Hasher.verify

    def counted(hasher: Hasher, stored: str | None, password: str) -> object:
        verified.append(password)
        return verify(hasher, stored, password)

    monkeypatch.setattr(Hasher, "verify", counted)
    new = "a new and longer password"
    # The attempt, what came of it, and two commits of the new password that lose.
    contended.extend((True, True, False, False))
    browser.submit({"current_password": PASSWORD, "new_password": new, "new_password_again": new}, form="page-form")
    assert browser.page.status_int == 200, browser.page
    assert contended == []
    assert verified.count(PASSWORD) == 1


def test_request_does_not_conflict_with_its_own_idempotency_key(
    own_world: World, contended: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = own_world.an_organization()
    api = Api.of(own_world.a_manager("IAM_OWNER", resource=INSTANCE))
    domains = f"/organizations/{organization.id}/domains"
    api.post(domains, {"domain": "navy.example"})
    monkeypatch.setattr(own_world.identity.domain_checks, "find", lambda domain: "dns")
    contended.extend(SUCCEEDS_THEN_LOSES_TWICE)
    answer = api.ask("POST", f"{domains}/navy.example/verify", Idempotency_Key="once")
    assert (answer.status_int, answer.json["proof"]) == (200, "dns")
    assert contended == []
    again = api.ask("POST", f"{domains}/navy.example/verify", Idempotency_Key="once")
    assert again.json == answer.json


def test_steps_of_one_name_in_one_attempt_are_all_done(own_world: World) -> None:
    """A guess must not be judged at the price of the one before it."""
    attempt = IdentityRequest.blank("/", method="POST")
    attempt.registry = own_world.app.registry
    done: list[int] = []
    with attempt.tm:
        attempt.environ["tm.active"] = True

        def step() -> int:
            done.append(len(done))
            return done[-1]

        assert [attempt.once("guess", step) for _ in range(2)] == [0, 1]
        later = IdentityRequest(attempt.environ)
        later.registry = own_world.app.registry
        with later.tm:
            assert [later.once("guess", step) for _ in range(3)] == [0, 1, 2]
    assert done == [0, 1, 2]
