"""Responses to clients while the service reads from a standby."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from identity.domain.permissions import Resource
from identity.http.request_services import RequestServices
from identity.instrumentation import InstrumentationObserver, Measurement, add_observers, remove_observers
from identity.plugins.sql.backend import SqlBackend
from identity.plugins.sql.storage import SqlStorage
from identity.testing.fixtures import DatabaseFactory, WorldCache
from identity.testing.postgresql import drop_database, new_database
from identity.testing.world import World
from tests.storage.sql.standby_pair import (
    STALENESS,
    PairClock,
    StandbyPair,
    clock,
    own_pair,
    pair,
    quick,
    shared_pair,
    until,
)

__all__ = ["clock", "own_pair", "pair", "quick", "shared_pair"]

pytestmark = pytest.mark.usefixtures("quick")


class Heard(InstrumentationObserver):
    """Records which server each response was read from, and the age of its data."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.ages: list[float] = []

    def record_outcome(self, kind: str, name: str, outcome: str) -> None:
        self.sources.append(f"{name}: {outcome}")

    def record_lag(self, kind: str, seconds: float) -> None:
        assert kind == Measurement.STANDBY_READ
        self.ages.append(seconds)


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    add_observers([heard])
    yield heard
    remove_observers([heard])


def make_standby_world(databases: DatabaseFactory, pair: StandbyPair) -> World:
    url = new_database(pair.primary)
    return databases.make_world(
        databases.new_database_settings("sqlite")
        | {
            "identity.plugin.sql.url": url,
            "identity.plugin.sql.standby_url": pair.standby_url(url),
            "identity.plugin.sql.standby_staleness": f"{STALENESS.seconds}s",
        }
    )


@pytest.fixture
def world(database_factory: DatabaseFactory, pair: StandbyPair) -> Iterator[World]:
    """A service on the shared servers."""
    world = make_standby_world(database_factory, pair)
    yield world
    world.close()
    pair.resume()
    drop_database(pair.primary, world.settings["identity.plugin.sql.url"])


@pytest.fixture
def own_world(database_factory: DatabaseFactory, own_pair: StandbyPair) -> Iterator[World]:
    """A service on two servers that a test may stop."""
    world = make_standby_world(database_factory, own_pair)
    yield world
    world.close()


class StandbyClient:
    """A program with a token, and a client that introspects it."""

    def __init__(self, world: World, heard: Heard) -> None:
        self.world, self.heard = world, heard
        self.robot = world.make_service_user_program()
        self.token = self.robot.management_token()
        self.client = world.introspector

    def introspect(self, token: str | None = None) -> tuple[int, bool | None, str]:
        """The status, whether the token is active, and which server was read from."""
        del self.heard.sources[:]
        answer = self.world.client.introspect(token or self.token, self.client)
        return answer.status_int, answer.json.get("active"), self._source("introspect")

    def userinfo(self, token: str | None = None) -> tuple[int, str]:
        """The status, and which server was read from."""
        del self.heard.sources[:]
        answer = self.world.client.fetch_userinfo(token or self.token)
        return answer.status_int, self._source("userinfo")

    def until_from_standby(self) -> None:
        """Return when responses come from the standby."""
        until(lambda: self.introspect()[2] == "standby" or None)

    def _source(self, endpoint: str) -> str:
        (source,) = self.heard.sources
        assert source.startswith(f"{endpoint}: ")
        return source.removeprefix(f"{endpoint}: ")


@pytest.fixture
def asking(world: World, heard: Heard) -> StandbyClient:
    return StandbyClient(world, heard)


@pytest.fixture
def asking_own(own_world: World, heard: Heard) -> StandbyClient:
    return StandbyClient(own_world, heard)


def test_only_token_reads_may_use_a_standby(world_cache: WorldCache) -> None:
    endpoints = world_cache.shared_world("sqlite").identity.protocol_registry.endpoints
    assert {endpoint.name for endpoint in endpoints if endpoint.allows_stale_reads} == {"introspect", "userinfo"}
    assert not any(endpoint.writes for endpoint in endpoints if endpoint.allows_stale_reads)


def test_no_standby_queries_without_a_standby(
    world_cache: WorldCache, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_cache.shared_world("sqlite")
    monkeypatch.setattr(RequestServices, "begin_standby_read", lambda _: pytest.fail("there is none"))
    token = world.make_service_user_program().management_token()
    assert world.client.introspect(token, world.introspector).json["active"]
    assert heard.sources == []


@pytest.mark.thorough
def test_introspection_and_userinfo_come_from_the_standby(asking: StandbyClient, heard: Heard) -> None:
    assert asking.introspect() == (200, True, "primary"), "nothing is known of the standby yet"
    asking.until_from_standby()
    assert asking.introspect() == (200, True, "standby")
    assert asking.userinfo() == (200, "standby")
    assert heard.ages
    assert all(0 < age < STALENESS.total_seconds() for age in heard.ages)


@pytest.mark.exhaustive
def test_token_of_a_moment_ago_is_active_though_the_standby_does_not_know_it(
    asking: StandbyClient, pair: StandbyPair
) -> None:
    asking.until_from_standby()
    pair.pause()
    fresh = asking.robot.management_token()
    assert asking.introspect() == (200, True, "standby")
    assert asking.introspect(fresh) == (200, True, "primary")
    assert asking.userinfo(fresh) == (200, "primary")


@pytest.mark.thorough
def test_refusal_is_the_primarys(asking: StandbyClient) -> None:
    asking.until_from_standby()
    assert asking.introspect("unknown") == (200, False, "primary")
    assert asking.userinfo("unknown") == (401, "primary")


@pytest.mark.thorough
def test_refused_client_is_audited_once(asking: StandbyClient) -> None:
    asking.until_from_standby()
    wrong = replace(asking.client, secret="wrong")
    assert asking.world.client.introspect(asking.token, wrong).status_int == 401
    events = asking.world.audit_events()
    assert [event.event for event in events].count("authentication.refused") == 1


@pytest.mark.thorough
def test_revoked_token_is_active_for_no_longer_than_is_allowed(
    asking: StandbyClient, pair: StandbyPair, clock: PairClock
) -> None:
    asking.until_from_standby()
    pair.pause()
    asking.world.client.revoke(asking.token, asking.client)
    assert asking.introspect() == (200, True, "standby")
    clock.advance(STALENESS)
    assert asking.introspect() == (200, False, "primary")
    assert asking.userinfo() == (401, "primary")
    pair.resume()
    other = asking.robot.management_token()
    until(lambda: asking.introspect(other)[2] == "standby" or None)
    assert asking.introspect() == (200, False, "primary")


@pytest.mark.exhaustive
def test_token_reads_continue_during_primary_outage_until_stale(
    asking_own: StandbyClient, own_pair: StandbyPair, clock: PairClock
) -> None:
    asking, client = asking_own, asking_own.world.client
    assert client.fetch_jwks().status_int == 200
    asking.until_from_standby()
    own_pair.primary.stop()
    assert asking.introspect() == (200, True, "standby")
    assert asking.userinfo() == (200, "standby")
    refusal = client.introspect("unknown", asking.client)
    assert (refusal.status_int, "Retry-After" in refusal.headers) == (503, True), "only the primary could know it"
    clock.advance(STALENESS)
    answer = client.introspect(asking.token, asking.client)
    assert (answer.status_int, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.headers["Retry-After"]
    assert client.fetch_jwks().json["keys"]
    assert client.get("https://id.example.com/.well-known/openid-configuration").status_int == 200
    own_pair.primary.start()
    asking.until_from_standby()


@pytest.mark.exhaustive
def test_lost_standby_does_not_affect_responses(asking_own: StandbyClient, own_pair: StandbyPair) -> None:
    asking_own.until_from_standby()
    own_pair.standby.stop()
    for _ in range(20):
        assert asking_own.introspect() == (200, True, "primary")
        assert asking_own.userinfo() == (200, "primary")
    own_pair.standby.start()
    asking_own.until_from_standby()


@pytest.mark.thorough
def test_failed_standby_read_falls_back_to_primary(asking: StandbyClient, pair: StandbyPair) -> None:
    asking.until_from_standby()
    backend = asking.world.identity.backend
    assert isinstance(backend, SqlBackend)
    with until(backend.standby_session) as storage:
        assert isinstance(storage, SqlStorage)
        # From now on this connection finds no tables.
        storage.connection.execute_raw("SET search_path = nowhere")
    answers = [asking.introspect() for _ in range(50)]
    assert {answer[:2] for answer in answers} == {(200, True)}
    assert "primary" in {source for *_, source in answers}


def test_stale_reads_are_cached_separately(world: World) -> None:
    with world.identity.backend.read_session() as storage:
        services = world.identity.create_standby_services(storage, lambda: pytest.fail("nobody acts"))
        lagging, process = services._process, world.identity.process_state
    assert lagging.key_ring is not process.key_ring
    assert lagging.policy_cache is not process.policy_cache


@pytest.mark.exhaustive
def test_other_reads_use_the_primary(asking: StandbyClient, pair: StandbyPair) -> None:
    world = asking.world
    asking.until_from_standby()
    pair.pause()
    organization = world.make_organization()
    token = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE).management_token()
    path = f"https://id.example.com/management/v1/organizations/{organization.id}"
    assert world.client.get(path, {"Authorization": f"Bearer {token}"}).json["name"] == organization.name


@pytest.mark.exhaustive
def test_system_checks_report_a_bad_standby(database_factory: DatabaseFactory, pair: StandbyPair) -> None:
    world = make_standby_world(database_factory, pair)
    assert "standby" in {system_check.name for system_check in world.identity.system_checks}
    until(lambda: "standby" not in world.identity.system_checks.failures() or None)
    world.close()
    settings = {**world.settings, "identity.plugin.sql.standby_url": pair.standby.url("postgres")}
    world = database_factory.make_world(settings)
    assert "has another database" in world.identity.system_checks.failures()["standby"]
    assert "standby" not in world.identity.system_checks.failures(readiness_only=True)
    world.close()
