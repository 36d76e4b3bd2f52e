"""Concurrent processes of one service, as behind a load balancer, on databases that processes can share."""

import math
import time
from collections import Counter
from collections.abc import Iterable

import pytest

from identity.domain.attempts import FREE_ATTEMPTS
from identity.domain.permissions import INSTANCE_KEY
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.browser import Browser, set_password
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory, WorldFactory
from identity.testing.world import World
from tests import nodes as acts
from tests.nodes import PROCESSES, NodePool

pytestmark = pytest.mark.storages("sqlite", "postgresql", "mariadb")  # memory belongs to one process


def test_assertion_used_fifty_times_succeeds_once(isolated_world: World, nodes: NodePool) -> None:
    """Security 2.6: the unique index decides across nodes."""
    robot = isolated_world.make_service_user_program()
    assertion = robot.assertion(jti="once", exp=isolated_world.clock.seconds + 3600)
    requests_per_process = -(-50 // PROCESSES)
    answers = [
        item
        for outcome in nodes.run_on_all(
            acts.present_assertion, isolated_world.settings, assertion, requests_per_process
        )
        for item in outcome
    ]
    assert Counter(answers) == {(200, "openid"): 1, (400, "invalid_grant"): requests_per_process * PROCESSES - 1}


@pytest.mark.exhaustive
def test_assertions_without_jti_all_succeed(isolated_world: World, nodes: NodePool) -> None:
    """No request waits until it times out."""
    robot = isolated_world.make_service_user_program()
    assertion = robot.assertion(exp=isolated_world.clock.seconds + 3600)
    answers = [
        item
        for outcome in nodes.run_on_all(acts.present_assertion, isolated_world.settings, assertion, 16)
        for item in outcome
    ]
    assert Counter(answers) == {(200, "openid"): 16 * PROCESSES}


def outcomes_of(answers: list[tuple[int, str]]) -> Counter[tuple[int, str]]:
    """The number of responses of each kind; the results of successful ones are left out."""
    return Counter((status, "" if status == 200 else answer) for status, answer in answers)


@pytest.fixture
def patient(make_world: WorldFactory) -> World:
    """A service whose codes outlive the start of processes."""
    return make_world(**{"identity.authorization_code_lifetime": "10m"})


@pytest.mark.exhaustive
@pytest.mark.parametrize("scope", ["openid offline_access", "openid"])
def test_code_used_a_hundred_times_succeeds_once(patient: World, nodes: NodePool, scope: str) -> None:
    """Security 5.2 and 5.3: one conditional write succeeds; the replays also commit their revocations."""
    world, client = patient, patient.make_web_application()
    other = world.obtain_tokens(client)
    form = {"grant_type": "authorization_code", **world.make_code(client, scope=scope).form()}
    requests_per_process = -(-100 // PROCESSES)
    answers = [
        item
        for part in nodes.run_on_all(acts.exchange_credential, world.settings, form, client, requests_per_process)
        for item in part
    ]
    assert outcomes_of(answers) == {(200, ""): 1, (400, "invalid_grant"): requests_per_process * PROCESSES - 1}
    [brought] = [answer for status, answer in answers if status == 200]
    if "offline_access" in scope:
        assert world.refresh(brought, client).json["error"] == "invalid_grant"
    else:
        assert world.client.fetch_userinfo(brought).status_int == 401
    assert [event.object_kind for event in world.audit_events(event="token.replayed")] == ["authorization_code"]
    assert world.client.fetch_userinfo(other["access_token"]).status_int == 200


def test_concurrent_refreshes_succeed_once_and_revoke_the_family(patient: World, nodes: NodePool) -> None:
    """Security 6.2 and 6.3, without a grace period."""
    world, client = patient, patient.make_web_application()
    members, other = world.obtain_tokens(client), world.obtain_tokens(client)
    form = {"grant_type": "refresh_token", "refresh_token": members["refresh_token"]}
    requests_per_process = -(-100 // PROCESSES)
    answers = [
        item
        for part in nodes.run_on_all(acts.exchange_credential, world.settings, form, client, requests_per_process)
        for item in part
    ]
    assert outcomes_of(answers) == {(200, ""): 1, (400, "invalid_grant"): requests_per_process * PROCESSES - 1}
    [successor] = [answer for status, answer in answers if status == 200]
    assert world.refresh(successor, client).json["error"] == "invalid_grant"
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 401
    assert len(world.audit_events(event="token.replayed")) == 1
    assert world.client.fetch_userinfo(other["access_token"]).status_int == 200
    assert world.refresh(other["refresh_token"], client).status_int == 200


@pytest.fixture
def graceful(make_world: WorldFactory) -> World:
    """A service with a grace period for clients that lost a response."""
    return make_world(**{"identity.authorization_code_lifetime": "10m", "identity.refresh_token_grace": "60"})


def live(world: World, refresh_tokens: Iterable[str]) -> list[str]:
    """The refresh tokens that are still valid."""
    with world.read_only_services() as services:
        presented = [(text, services.tokens.find_refresh_token(text)) for text in refresh_tokens]
    return [
        text
        for text, presented_refresh_token in presented
        if presented_refresh_token is not None
        and presented_refresh_token.token.rotated_at is None
        and presented_refresh_token.token.revoked_at is None
        and presented_refresh_token.family.revoked_at is None
    ]


@pytest.mark.exhaustive
def test_concurrent_refreshes_with_grace_leave_one_live_chain(graceful: World, nodes: NodePool) -> None:
    """Security 6.2: every request succeeds, and only the last successor stays valid."""
    world, client = graceful, graceful.make_web_application()
    form = {"grant_type": "refresh_token", "refresh_token": world.obtain_tokens(client)["refresh_token"]}
    requests_per_process = -(-100 // PROCESSES)
    answers = [
        item
        for part in nodes.run_on_all(acts.exchange_credential, world.settings, form, client, requests_per_process)
        for item in part
    ]
    assert outcomes_of(answers) == {(200, ""): requests_per_process * PROCESSES}
    [successor] = live(world, [answer for _, answer in answers])
    assert world.refresh(successor, client).status_int == 200
    assert world.audit_events(event="token.replayed") == ()


@pytest.mark.exhaustive
def test_refresh_of_two_generations_with_grace_leaves_at_most_one_live_chain(graceful: World, nodes: NodePool) -> None:
    """Half of the requests repeat the last refresh, the others use its successor, in any order."""
    world, client = graceful, graceful.make_web_application()
    first = world.obtain_tokens(client)["refresh_token"]
    second = world.refresh(first, client).json["refresh_token"]
    forms = [{"grant_type": "refresh_token", "refresh_token": token} for token in (first, second)]
    answers = [
        item for part in nodes.run_on_all(acts.exchange_credentials, world.settings, forms, client, 34) for item in part
    ]
    assert set(outcomes_of(answers)) <= {(200, ""), (400, "invalid_grant")}
    assert len(live(world, [second, *(answer for status, answer in answers if status == 200)])) <= 1


def test_revoked_token_is_dead_on_every_node_at_once(isolated_world: World, nodes: NodePool) -> None:
    """Security 7.4: after an acknowledged revocation no node accepts the token."""
    client = isolated_world.introspector
    token = isolated_world.make_service_user_program().management_token()
    outcomes = nodes.run_on_all(acts.revoke_and_introspect, isolated_world.settings, token, client)
    assert {item for outcome in outcomes for item in outcome} == {(200, "False")}


@pytest.mark.exhaustive
def test_empty_database_is_bootstrapped_once(
    database_factory: DatabaseFactory, key_pool: RsaKeyPool, nodes: NodePool, storage_name: str
) -> None:
    """Security 8.3 and 14.6: one instance, one first key and one owner, in any order."""
    settings = database_factory.empty_database_settings(storage_name)
    outcomes = nodes.run_on_all(acts.bootstrap_node, settings)
    assert len({(organization, project) for organization, project, _, _ in outcomes}) == 1
    assert [is_created for _, _, is_created, _ in outcomes].count(True) == 1
    assert {len(kids) for _, _, _, kids in outcomes} == {1}
    assert len({tuple(kids) for _, _, _, kids in outcomes}) == 1
    world = World(settings, clock=TickingClock(), key_pool=key_pool)
    with world.read_only_services() as services:
        assert len(services.storage.organizations.page().items) == 1
        assert len(services.storage.signing_keys.list_all()) == 1
        assert len(services.storage.managers.page(INSTANCE_KEY).items) == 1
    assert world.make_service_user_program().access_token()
    world.close()
    database_factory.drop(settings)


def test_concurrent_rotation_creates_one_key(isolated_world: World, nodes: NodePool) -> None:
    """Security 8.3: the key sets are equal on every node."""
    recorded = {
        kids for outcome in nodes.run_on_all(acts.rotate_signing_keys, isolated_world.settings, 5) for kids in outcome
    }
    assert len(recorded) == 1
    assert len(recorded.pop()) == 2
    with isolated_world.read_only_services() as services:
        assert [key.generation for key in services.storage.signing_keys.list_all()] == [1, 2]


@pytest.mark.parametrize("names", ["one", pytest.param("both", marks=pytest.mark.exhaustive)])
def test_concurrent_wrong_passwords_are_rate_limited(isolated_world: World, nodes: NodePool, names: str) -> None:
    """Security 10.3: attempts are counted across processes before the password is verified, and then delayed."""
    person = isolated_world.make_human_user()
    full = set_password(isolated_world, person)
    wrong = [f"a wrong password, number {number}" for number in range(-(-100 // PROCESSES))]
    begun = time.monotonic()
    statuses = Counter(
        status
        for part in nodes.run_on_all(
            acts.guess_passwords,
            isolated_world.settings,
            [person.user_name] if names == "one" else [person.user_name, full],
            wrong,
        )
        for status in part
    )
    seconds = time.monotonic() - begun
    assert set(statuses) == {422, 429}, statuses
    with isolated_world.read_only_services() as services:
        [looked_at] = services.storage.attempts.count_failures([f"user:{person.id}"]).values()
    # Five at once; then one after 1 s, one after 2 s more, and so on.
    most = FREE_ATTEMPTS + 1 + math.log2(seconds + 1)
    assert FREE_ATTEMPTS <= looked_at <= most, (statuses, seconds)
    # Two names have two counts, which does not reveal that they belong to one account.
    assert looked_at <= statuses[422] <= (most if names == "one" else 2 * most), (statuses, seconds)
    # The right password is delayed, too.
    browser = Browser(isolated_world)
    browser.open(f"{isolated_world.issuer}/login")
    browser.sign_in(person.user_name)
    assert browser.page.status_int == 429
    assert int(browser.page.headers["Retry-After"]) > 0
