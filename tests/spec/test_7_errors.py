"""Service description §7, security 9.5 and 12.6: responses to errors, including internal ones."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from identity.provider import token_issuance
from identity.services.access_control import Principal
from identity.services.commands.service_users import ChangeServiceUser
from identity.services.tokens import TokenService
from identity.storage.errors import StorageUnavailable
from identity.testing.response_checks import check_api_error, check_oauth_error, check_token_response
from identity.testing.service_test_client import DISCOVERY_PATH
from identity.testing.world import ServiceUserProgram, World
from identity.transaction_manager import ExplicitTransactionManager

#: Text of the internal error, which no response may contain.
DETAIL = "db.internal:5432 user=identity"


def away(*_: object) -> None:
    """Raises the error of an unreachable storage."""
    raise StorageUnavailable(DETAIL)


ASKING: dict[str, Callable[[World, ServiceUserProgram, str], Any]] = {
    "token": lambda world, robot, token: robot.request_token(),
    "introspection": lambda world, robot, token: world.client.introspect(token, world.introspector),
    "userinfo": lambda world, robot, token: world.client.fetch_userinfo(token),
    "revocation": lambda world, robot, token: world.client.revoke(token, world.introspector),
}


@pytest.fixture
def token(robot: ServiceUserProgram) -> str:
    robot.world.client.fetch_jwks()
    robot.world.introspector  # noqa: B018 - registered while there is a storage
    return robot.management_token()


@pytest.fixture
def storage_away(world: World, token: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The storage is unavailable; its error names host and user."""
    monkeypatch.setattr(world.identity.backend, "read_session", away)
    monkeypatch.setattr(world.identity.backend, "join_transaction", away)
    monkeypatch.setattr(world.identity.backend, "check", away)
    yield
    monkeypatch.undo()


@pytest.mark.shows("7.9")
@pytest.mark.usefixtures("storage_away")
@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING.keys())
def test_storage_outage_is_503(
    world: World, robot: ServiceUserProgram, token: str, ask: Callable[[World, ServiceUserProgram, str], Any]
) -> None:
    """Security 9.5: with Retry-After, without the cause."""
    answer = ask(world, robot, token)
    check_oauth_error(answer, "temporarily_unavailable", status=503)
    assert int(answer.headers["Retry-After"]) > 0
    assert "internal" not in f"{answer.headers} {answer.text}"


@pytest.mark.usefixtures("storage_away")
def test_storage_outage_is_503_at_management_api(world: World, token: str) -> None:
    answer = world.client.call_management_api("/me", token)
    check_api_error(answer, 503, "temporarily_unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert "internal" not in answer.text


@pytest.mark.usefixtures("storage_away")
def test_discovery_and_keys_survive_storage_outage(world: World) -> None:
    assert world.client.get(world.issuer + DISCOVERY_PATH).status_int == 200
    assert world.client.fetch_jwks().status_int == 200
    assert world.client.get(f"{world.issuer}/healthz").status_int == 200


def test_keys_are_served_from_cache_for_five_minutes(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Security 9.5: a cached copy, at most 5 minutes old."""
    kids = isolated_world.client.fetch_jwks().json
    monkeypatch.setattr(isolated_world.identity.backend, "read_session", away)
    isolated_world.clock.advance(299)
    assert isolated_world.client.fetch_jwks().json == kids
    isolated_world.clock.advance(1)
    check_oauth_error(isolated_world.client.fetch_jwks(), "temporarily_unavailable", status=503)
    monkeypatch.undo()
    assert isolated_world.client.fetch_jwks().json == kids


@pytest.mark.usefixtures("storage_away")
def test_readiness_names_failing_check_only(world: World) -> None:
    """Security 9.9."""
    answer = world.client.get(f"{world.issuer}/readyz")
    assert answer.status_int == 503
    assert "storage" in answer.json["failed"]
    assert "internal" not in answer.text


def test_service_recovers_after_storage_outage(
    world: World, robot: ServiceUserProgram, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Security 9.5: recovery without restart."""
    with monkeypatch.context() as patch:
        patch.setattr(world.identity.backend, "join_transaction", away)
        assert robot.request_token(jti="kept").status_int == 503
    check_token_response(robot.request_token(jti="kept"))
    answer = world.client.get(f"{world.issuer}/readyz")
    assert (answer.status_int, answer.json["failed"]) == (200, [])


def test_unstored_token_is_not_returned(
    world: World, robot: ServiceUserProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Security 9.1: earlier writes are rolled back, including the used jti."""
    assertion = robot.assertion(jti="kept")

    with monkeypatch.context() as patch:
        patch.setattr(TokenService, "store_access_token", away)
        check_oauth_error(world.client.exchange_assertion(assertion), "temporarily_unavailable", status=503)
    check_token_response(world.client.exchange_assertion(assertion))


class Objecting:
    """A transaction participant that fails at the last moment."""

    def __init__(self, transactions: object) -> None:
        self.transaction_manager = transactions

    def sortKey(self) -> str:  # noqa: N802 - the name is given by the interface
        return "!"

    def tpc_vote(self, transaction: object) -> None:
        raise StorageUnavailable(DETAIL)

    def _agree(self, transaction: object) -> None:
        pass

    abort = tpc_begin = commit = tpc_finish = tpc_abort = _agree


class FailingToAbort(Objecting):
    """A transaction participant that cannot roll back."""

    def abort(self, transaction: object) -> None:
        raise StorageUnavailable(DETAIL)

    tpc_vote = Objecting._agree


@contextmanager
def joined_by(kind: type[Objecting], world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Adds such a participant to each writing transaction."""
    backend = world.identity.backend
    open_storage = backend.join_transaction

    def writing(transactions: Any) -> Any:
        storage = open_storage(transactions)
        transactions.get().join(kind(transactions))
        return storage

    with monkeypatch.context() as patch:
        patch.setattr(backend, "join_transaction", writing)
        yield


def test_failed_rollback_is_503(world: World, robot: ServiceUserProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    """Security 9.1: the state that led to the refusal may be rolled back, as when writers share a failing commit."""
    assertion = robot.assertion(jti="replayed")
    check_token_response(world.client.exchange_assertion(assertion))
    with joined_by(FailingToAbort, world, monkeypatch):
        check_oauth_error(world.client.exchange_assertion(assertion), "temporarily_unavailable", status=503)
    check_oauth_error(world.client.exchange_assertion(assertion), "invalid_grant")


def test_response_follows_commit(
    world: World, robot: ServiceUserProgram, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Security 7.7 and 9.1: if the commit fails, the response is 503, not 200."""
    assertion = robot.assertion(jti="kept")
    with joined_by(Objecting, world, monkeypatch):
        check_oauth_error(world.client.revoke(token, world.introspector), "temporarily_unavailable", status=503)
        check_oauth_error(world.client.exchange_assertion(assertion), "temporarily_unavailable", status=503)
    assert world.client.introspect(token, world.introspector).json["active"] is True
    check_token_response(world.client.exchange_assertion(assertion))


def test_unexpected_exception_is_500_with_request_id_only(
    world: World, robot: ServiceUserProgram, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Security 12.6."""

    def fail(*args: object) -> None:
        raise RuntimeError(DETAIL)

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(token_issuance, "new_id", fail)
        answer = robot.request_token(jti="kept")
    assert answer.status_int == 500
    assert answer.content_type == "application/json"
    assert set(answer.json) == {"error", "request_id"}
    assert answer.json["error"] == "server_error"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "internal" not in f"{answer.headers} {answer.text}"
    assert answer.json["request_id"] in caplog.text
    assert DETAIL in caplog.text
    check_token_response(robot.request_token(jti="kept"))


def test_unexpected_exception_in_management_api_is_500(
    world: World, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError(DETAIL)

    with monkeypatch.context() as patch:
        patch.setattr(TokenService, "find_live_access_token", fail)
        answer = world.client.call_management_api("/me", token)
    check_api_error(answer, 500, "server_error")
    assert "internal" not in answer.text


def test_unknown_paths_are_not_found(world: World) -> None:
    for path in ("/none", "/favicon.ico", "/oauth", "/oauth/v2", "/oauth/v2/", "/oauth/v2/none", "//", "/%"):
        answer = world.client.get(world.issuer + path)
        check_api_error(answer, 404, "not_found")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_undecodable_path_is_not_found(world: World) -> None:
    for raw in ("/\xff", "/oauth/v2/token\xff", "/\xc3", "/a\0b", "/\xed\xa0\x80"):
        answer = world.client.request("GET", world.issuer + "/x", environ={"PATH_INFO": raw})
        check_api_error(answer, 404, "not_found")


def test_errors_are_plain_json(world: World, robot: ServiceUserProgram) -> None:
    """No charset, no markup, nothing that a browser would execute."""
    answer = robot.request_token(aud='"><script>')
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body) == answer.json
    assert b"<" not in answer.body


def test_background_jobs_continue_after_failed_commit(
    world: World, robot: ServiceUserProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread whose commit failed can start another transaction."""

    class Failing(ExplicitTransactionManager):
        def begin(self) -> Any:
            begun = super().begin()
            begun.join(Objecting(self))
            return begun

    def change() -> None:
        with world.transaction_services() as services:
            services.service_users.change(
                robot.id, ChangeServiceUser(display_name="Lost"), principal=Principal.OPERATOR
            )

    with monkeypatch.context() as failing:
        failing.setattr("identity.application.ExplicitTransactionManager", Failing)
        for _ in range(2):
            with pytest.raises(StorageUnavailable):
                change()
    with world.read_only_services() as services:
        assert services.service_users.get(robot.id).display_name == robot.user.display_name
