"""Metrics of requests, sign-ins, the database and the storage."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from identity import instrumentation
from identity.domain.audit import AuditEvent
from identity.plugins.metrics import storage_gauges
from identity.plugins.metrics.counters import ProcessCounters
from identity.plugins.metrics.families import COUNTER_FAMILIES, FAMILIES
from identity.storage.errors import StorageUnavailable
from identity.testing.browser import PASSWORD, Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.metrics.conftest import TOKEN, MakeWatched, MetricsService


@pytest.fixture
def uncached_gauges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage gauges are read for each response."""
    monkeypatch.setattr(storage_gauges, "_CACHE_SECONDS", 0)


def test_metrics_are_disabled_by_default(isolated_world: World) -> None:
    with isolated_world.identity.lifespan():
        assert isolated_world.client.get(f"{isolated_world.issuer}/metrics").status_int == 404
        assert not instrumentation.has_observers()


@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper()])
def test_metrics_require_token(watched: MetricsService, token: str | None) -> None:
    answer = watched.ask(token)
    assert answer.status_int == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert b"identity_" not in answer.body


def test_world_readable_token_file_disables_metrics(watched: MetricsService) -> None:
    Path(watched.world.settings["identity.plugin.metrics.token_file"]).chmod(0o644)
    answer = watched.ask()
    assert answer.status_int == 503
    assert TOKEN not in answer.text


def test_every_metric_family_has_help_and_type(watched: MetricsService) -> None:
    text = watched.ask().text
    for family in FAMILIES:
        name = family.name if family not in COUNTER_FAMILIES or family.buckets else f"{family.name}_total"
        assert f"# HELP {name} " in text
        assert f"# TYPE {name} " in text


@pytest.mark.thorough
def test_openmetrics_format_is_negotiated(watched: MetricsService) -> None:
    answer = watched.ask(Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_requests_are_counted_by_route_and_status(watched: MetricsService) -> None:
    world = watched.world
    for number in range(20):
        world.client.get(f"{world.issuer}/nowhere/{number}")
    world.client.get(f"{world.issuer}/.well-known/openid-configuration")
    metrics = watched.scrape()
    assert metrics.value("identity_requests_total", endpoint="none", status="404") == 20
    assert metrics.value("identity_requests_total", endpoint="protocol.metadata", status="200") == 1
    assert metrics.value("identity_request_seconds_count", endpoint="none") == 20
    assert metrics.value("identity_request_seconds_bucket", endpoint="none", le="+Inf") == 20
    assert metrics.labels("identity_requests_total", "endpoint") == {"none", "protocol.metadata"}


def test_grants_are_counted_by_outcome(watched: MetricsService) -> None:
    world = watched.world
    robot = world.make_service_user_program()
    robot.request_token()
    robot.request_token(exp=1)
    world.client.exchange_assertion("no assertion", "openid")
    world.client.post(f"{world.issuer}/oauth/v2/token", {"grant_type": "made up"})
    metrics, grant = watched.scrape(), "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert metrics.value("identity_grants_total", grant_type=grant, outcome="issued") == 1
    assert metrics.value("identity_grants_total", grant_type=grant, outcome="invalid_grant") == 2
    counted = {dict(labels)["grant_type"] for name, labels in metrics.counted if name == "identity_grants_total"}
    assert counted == {grant}
    assert metrics.value("identity_requests_total", endpoint="protocol.token", status="400") == 3


def test_known_label_values_start_at_zero(watched: MetricsService) -> None:
    """Prometheus misses the first increase of a counter that starts at one."""
    metrics, protocol = watched.scrape(), watched.world.identity.protocol_registry
    assert metrics.labels("identity_audit_events_total", "event") == AuditEvent.NAMES
    for grant in protocol.grant_types:
        assert metrics.samples["identity_grants_total", (("grant_type", grant), ("outcome", "issued"))] == 0
    for method in ("password", *protocol.factors):
        for outcome in ("succeeded", "refused", "held back", "busy", "failed"):
            assert metrics.samples["identity_sign_ins_total", (("method", method), ("outcome", outcome))] == 0


def test_process_is_busy_until_the_response(watched: MetricsService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process publishes pool usage meanwhile: nothing is counted while all requests wait for the database."""
    robot, busy_states = watched.world.make_service_user_program(), []
    [counts] = (observer for observer in watched.world.identity.observers if isinstance(observer, ProcessCounters))

    def waiting(*_: object, **__: object) -> Any:
        busy_states.append(counts.is_busy())
        raise StorageUnavailable("away")

    monkeypatch.setattr("identity.provider.endpoints.token.mint_granted_tokens", waiting)
    assert robot.request_token().status_int == 503
    assert busy_states == [True]
    assert not counts.is_busy()


@pytest.mark.thorough
def test_server_error_of_a_grant_has_its_own_outcome(watched: MetricsService, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> Any:
        raise StorageUnavailable("away")

    robot = watched.world.make_service_user_program()
    monkeypatch.setattr("identity.provider.endpoints.token.mint_granted_tokens", away)
    assert robot.request_token().status_int == 503
    metrics, grant = watched.scrape(), "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert metrics.value("identity_grants_total", grant_type=grant, outcome="failed") == 1
    assert metrics.value("identity_grants_total", grant_type=grant, outcome="issued") == 0


@pytest.mark.thorough
def test_sign_ins_are_counted_by_method_and_outcome(watched: MetricsService) -> None:
    world = watched.world
    person = world.make_human_user()
    name = set_password(world, person)
    party = RelyingParty.register(world, name="Invoices")
    before = watched.scrape().value("identity_password_seconds_count")
    for password in ("wrong", PASSWORD):
        browser = Browser(world)
        browser.open(party.new_request().url, initiator=party.origin)
        browser.sign_in(name, password)
    metrics = watched.scrape()
    assert metrics.value("identity_sign_ins_total", method="password", outcome="refused") == 1
    assert metrics.value("identity_sign_ins_total", method="password", outcome="succeeded") == 1
    assert metrics.value("identity_password_seconds_count") == before + 2
    assert metrics.value("identity_audit_events_total", event="session.started") == 1


@pytest.mark.thorough
def test_each_wrong_password_is_counted(watched: MetricsService) -> None:
    world = watched.world
    name = set_password(world, world.make_human_user())
    party = RelyingParty.register(world, name="Invoices")
    for _ in range(8):
        browser = Browser(world)
        browser.open(party.new_request().url, initiator=party.origin)
        browser.sign_in(name, "wrong")
    metrics = watched.scrape()
    counted = {
        outcome: metrics.value("identity_sign_ins_total", method="password", outcome=outcome)
        for outcome in ("refused", "held back")
    }
    assert counted["held back"] > 0
    assert sum(counted.values()) == 8


@pytest.mark.thorough
@pytest.mark.every_storage
def test_storage_gauges_match_stored_records(watched: MetricsService, uncached_gauges: None) -> None:
    world = watched.world
    robot = world.make_service_user_program()
    for _ in range(3):
        robot.access_token()
    world.add_service_user_key(robot, expires_at=world.clock() + timedelta(days=6))
    world.add_service_user_key(robot, expires_at=world.clock() + timedelta(days=8))
    metrics = watched.scrape()
    assert metrics.value("identity_storage_up") == 1
    assert metrics.value("identity_kept", what="access tokens") == 3
    assert metrics.value("identity_expiring_keys", what="service user keys") == 1
    assert metrics.value("identity_signing_key_due_seconds") == timedelta(days=90).total_seconds()
    assert metrics.value("identity_purge_backlog", what="access tokens") == 0
    world.clock.advance(days=3)
    metrics = watched.scrape()
    assert metrics.value("identity_signing_key_age_seconds") >= timedelta(days=3).total_seconds()
    assert metrics.value("identity_purge_backlog", what="access tokens") == 3
    world.identity.background_jobs.purge()
    metrics = watched.scrape()
    assert metrics.value("identity_purge_backlog", what="access tokens") == 0
    assert metrics.value("identity_kept", what="access tokens") == 0
    assert metrics.value("identity_purge_batch_seconds_count", what="access tokens") == 1


def test_unavailable_storage_is_reported(
    watched: MetricsService, monkeypatch: pytest.MonkeyPatch, uncached_gauges: None
) -> None:
    def away() -> Any:
        raise StorageUnavailable("away")

    monkeypatch.setattr(watched.world.identity.backend, "read_session", away)
    metrics = watched.scrape()
    assert metrics.samples["identity_storage_up", ()] == 0
    assert metrics.value("identity_requests_total", endpoint="metrics", status="200") == 0
    assert "identity_kept" in metrics.families
    assert not metrics.families["identity_kept"].samples


def test_storage_gauges_are_cached(watched: MetricsService, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = []
    reading = watched.world.identity.backend.read_session
    monkeypatch.setattr(watched.world.identity.backend, "read_session", lambda: sessions.append(1) or reading())
    for _ in range(5):
        watched.scrape()
    assert len(sessions) == 1


@pytest.mark.thorough
@pytest.mark.storages("sqlite", "postgresql")
def test_statements_signatures_and_connections_are_measured(watched: MetricsService) -> None:
    watched.world.make_service_user_program().access_token()
    metrics = watched.scrape()
    statements = metrics.labels("identity_statement_seconds_count", "statement")
    assert (
        {"SELECT", "INSERT", "COMMIT"}
        <= statements
        <= {"SELECT", "INSERT", "UPDATE", "DELETE", "COMMIT", "other"}
        | {
            "WITH",
            "SAVEPOINT",
            "RELEASE",
            "BEGIN",
        }
    )
    assert metrics.value("identity_signature_seconds_count", algorithm="RS256") > 0
    assert metrics.labels("identity_places", "what") == {"passwords", "reading", "writing"}
    assert metrics.labels("identity_waiting", "what") == {"passwords", "reading", "writing"}
    assert metrics.value("identity_places", what="reading") > 0
    assert metrics.value("identity_processes") == 1
    assert metrics.value("identity_process_resident_bytes") > 1 << 20


def test_observers_are_removed_after_shutdown(make_watched: MakeWatched) -> None:
    watched = make_watched()
    assert instrumentation.has_observers()
    watched.world.identity.close()
    assert not instrumentation.has_observers()


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_hostile_requests_add_no_labels(watched: MetricsService) -> None:
    """Security 20.10: methods, paths, grant types, factors and outcomes come from closed sets."""
    app, evil = watched.world.client.app, "evil-7f3a"
    for path in (
        f"/{evil}",
        f"/login/{evil}",
        f"/login/upstream/{evil}",
        f"/account/identities/new/{evil}",
        "/metrics",
    ):
        for method in ("GET", "POST", evil.upper()):
            app.request(path, method=method, expect_errors=True)
    for form in ({"grant_type": evil}, {"grant_type": "refresh_token", "refresh_token": evil, "client_id": evil}):
        app.post("/oauth/v2/token", form, headers={"X-Request-ID": evil, "User-Agent": evil}, expect_errors=True)
    instrumentation.record_outcome(instrumentation.Measurement.SIGN_IN, evil, evil)
    instrumentation.record_outcome(instrumentation.Measurement.SIGN_IN, "password", evil)
    text = watched.ask().text
    assert evil not in text.lower()
    metrics = watched.scrape()
    assert metrics.value("identity_sign_ins_total", method="other", outcome="other") == 1
    assert metrics.labels("identity_sign_ins_total", "method") <= {
        *watched.world.identity.process_state.capabilities.sign_in_methods, "recovery_codes", "other"
    }  # fmt: skip


def test_grant_outcome_is_a_known_error_code() -> None:
    from identity.http.request_observers import ObservedRequest
    from identity.plugins.metrics.request_counter import _grant_outcome
    from identity.provider.errors import InvalidGrant

    request = ObservedRequest("POST", "192.0.2.1", "id", {}.get, status=400, error=InvalidGrant)
    assert _grant_outcome(request) == "invalid_grant"
