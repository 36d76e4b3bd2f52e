"""A request that is retried after a conflict does not repeat what it has already committed."""

from typing import Any

import pyotp
import pytest

from identity.domain.attempts import FREE_ATTEMPTS
from identity.domain.permissions import Resource
from identity.http.request import IdentityRequest
from identity.password_hashing import PasswordHasher
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.http.transaction_conflicts import contend
from tests.plugins.factors.test_factor_races import at_the_page, enrol_factor
from tests.plugins.login.conftest import LoginUser, opened
from tests.plugins.login.test_registration_and_password_change import NEW
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = pytest.mark.storages("memory")

#: The first commit succeeds, so its content must not be repeated; the next two conflict.
SUCCEEDS_THEN_LOSES_TWICE = (True, False, False)


@pytest.fixture
def contended(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The outcomes of the next commits; False is a conflict."""
    return contend(isolated_world, monkeypatch)


def test_right_password_counts_as_one_attempt(isolated_world: World, contended: list[bool]) -> None:
    person, browser = LoginUser(isolated_world), Browser(isolated_world)
    opened(browser, RelyingParty.register(isolated_world))
    browser.submit({"login_name": person.login_name})
    for _ in range(FREE_ATTEMPTS - 1):
        assert browser.submit({"password": "wrong"}).status_int == 422
    contended.extend(SUCCEEDS_THEN_LOSES_TWICE)
    browser.submit({"password": PASSWORD})
    assert browser.external_redirect is not None, browser.page
    assert contended == []


def test_right_code_counts_as_one_attempt(isolated_world: World, contended: list[bool]) -> None:
    person, secret = LoginUser(isolated_world), pyotp.random_base32()
    enrol_factor(isolated_world, person, "totp", {"secret": secret, "step": 0})
    browser = at_the_page(isolated_world, RelyingParty.register(isolated_world), person, "totp")
    for _ in range(FREE_ATTEMPTS - 1):
        assert browser.submit({"code": "000000"}).status_int == 422
    contended.extend(SUCCEEDS_THEN_LOSES_TWICE)
    browser.submit({"code": pyotp.TOTP(secret).at(isolated_world.clock())})
    assert browser.external_redirect is not None, browser.page
    assert contended == []


def test_registration_counts_once_by_address(make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(**{"identity.attempts_per_address": "1"})
    browser, outcomes = Browser(world), contend(world, monkeypatch)
    opened(browser, RelyingParty.register(world), prompt="create")
    outcomes.extend(SUCCEEDS_THEN_LOSES_TWICE)
    browser.submit(NEW, form="page-form")
    assert browser.sign_in_step == "registered", browser.page
    assert outcomes == []


def test_current_password_is_verified_once(
    isolated_world: World, contended: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, browser, verified = isolated_world.make_human_user(), Browser(isolated_world), []
    set_password(isolated_world, person, PASSWORD)
    browser.start_session(person)
    browser.open("/account/password")
    verify = PasswordHasher.verify

    def counted(hasher: PasswordHasher, stored: str | None, password: str, **named: Any) -> object:
        verified.append(password)
        return verify(hasher, stored, password, **named)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    new = "a new and longer password"
    # The recorded attempt, its outcome, and two conflicting commits of the new password.
    contended.extend((True, True, False, False))
    browser.submit({"current_password": PASSWORD, "new_password": new, "new_password_again": new}, form="page-form")
    assert browser.page.status_int == 200, browser.page
    assert contended == []
    assert verified.count(PASSWORD) == 1


def test_request_does_not_conflict_with_its_own_idempotency_key(
    isolated_world: World, contended: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = isolated_world.make_organization()
    api = ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    domains = f"/organizations/{organization.id}/domains"
    api.post(domains, {"domain": "navy.example"})
    monkeypatch.setattr(isolated_world.identity.domain_verifier, "find_proof", lambda domain: "dns")
    contended.extend(SUCCEEDS_THEN_LOSES_TWICE)
    answer = api.ask("POST", f"{domains}/navy.example/verify", Idempotency_Key="once")
    assert (answer.status_int, answer.json["proof"]) == (200, "dns")
    assert contended == []
    again = api.ask("POST", f"{domains}/navy.example/verify", Idempotency_Key="once")
    assert again.json == answer.json


def test_repeated_steps_of_one_attempt_all_run(isolated_world: World) -> None:
    """Otherwise the second guess would reuse the result of the first."""
    attempt = IdentityRequest.blank("/", method="POST")
    attempt.registry = isolated_world.app.registry
    done: list[int] = []
    with attempt.tm:
        attempt.environ["tm.active"] = True

        def step() -> int:
            done.append(len(done))
            return done[-1]

        assert [attempt.run_once("guess", step) for _ in range(2)] == [0, 1]
        later = IdentityRequest(attempt.environ)
        later.registry = isolated_world.app.registry
        with later.tm:
            assert [later.run_once("guess", step) for _ in range(3)] == [0, 1, 2]
    assert done == [0, 1, 2]
