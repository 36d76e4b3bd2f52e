"""Security 20.12: clients disconnect during a batch of writes. Requests that have started complete, and no others."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from identity.asgi import AsgiApplication
from identity.asgi.application import _LoopState
from identity.concurrency import GreenletPool
from identity.plugins.sql.storage import SqlStorage
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import JWT_BEARER
from identity.testing.world import ServiceUserProgram, World
from tests.asgi.asgi_test_client import FORM, AsgiTestClient, Headers, wait_for

pytestmark = pytest.mark.storages("sqlite", "postgresql")

CLIENTS = 24
#: The number of requests that start; the others are still queued when their clients disconnect.
AT_ONCE = 12


@pytest.fixture
def world(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(isolated_world.identity.backend, "max_greenlets", AT_ONCE)
    return isolated_world


@pytest.fixture
def application(world: World) -> AsgiApplication:
    return AsgiApplication(world.app)


def token_request(world: World, application: AsgiApplication, authorization: str = "", **form: str) -> AsgiTestClient:
    body = urlencode(form).encode()
    headers: Headers = [
        (b"host", world.issuer.removeprefix("https://").encode()),
        (b"content-type", FORM),
        (b"content-length", str(len(body)).encode()),
    ]
    if authorization:
        headers.append((b"authorization", authorization.encode()))
    client = AsgiTestClient(application, "/oauth/v2/token", headers)
    client.send(body)
    return client


@contextmanager
def nobody_can_write(world: World) -> Iterator[None]:
    """Another process holds the write lock in the block."""
    with world.identity.backend.read_session() as storage:
        assert isinstance(storage, SqlStorage)
        driver = storage.connection.driver
    if isinstance(driver, sqlite3.Connection):
        [(_, _, file)] = driver.execute("PRAGMA database_list").fetchall()
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
    else:
        with psycopg.connect(driver.info.dsn, password=driver.info.password) as other:
            other.execute("LOCK TABLE access_tokens, refresh_tokens IN EXCLUSIVE MODE")
            yield
            other.rollback()


def stored_tokens(world: World) -> int:
    with world.identity.backend.read_session() as storage:
        assert isinstance(storage, SqlStorage)
        [[count]] = storage.connection.driver.execute("SELECT count(*) FROM access_tokens").fetchall()
    return int(count)


def greenlets_of(application: AsgiApplication) -> GreenletPool:
    loop: _LoopState = application._loop_state()
    assert loop._greenlets is not None
    return loop._greenlets


def check_nothing_is_lost(world: World, application: AsgiApplication) -> None:
    """No greenlet waits, and no slot and no connection is in use."""
    greenlets = greenlets_of(application)
    wait_for(lambda: not application._loop_state()._is_busy)
    assert not greenlets._waiters
    assert 0 < len(greenlets._idle) <= AT_ONCE
    assert all(greenlet.gr_frame is not None for greenlet in greenlets._idle), "each can be used again"
    assert all((load.in_use, load.queued) == (0, 0) for load in world.identity.backend.pool_usages)


def subject(world: World, token: str) -> Any:
    return world.client.fetch_userinfo(token).json["sub"]


@pytest.mark.thorough
@pytest.mark.parametrize("cancels", [True, False], ids=["cancelled", "disconnected"])
def test_started_requests_complete_and_responses_are_not_mixed_up(
    world: World, application: AsgiApplication, cancels: bool
) -> None:
    """Some servers cancel the task of a client that disconnects; others only send http.disconnect."""
    robots: list[ServiceUserProgram] = [world.make_service_user_program() for _ in range(CLIENTS)]
    assertions = [program.assertion(jti=program.id) for program in robots]
    # One assertion is presented twice and must be accepted once.
    assertions[4] = assertions[2]
    before = stored_tokens(world)
    clients = [
        token_request(world, application, grant_type=JWT_BEARER, assertion=assertion, scope="openid")
        for assertion in assertions
    ]
    with nobody_can_write(world):
        running = [client.begin() for client in clients]
        wait_for(lambda: application._loop is not None and greenlets_of(application).active_count == AT_ONCE)
        for client, task in list(zip(clients, running, strict=True))[1::2]:
            client.leave()
            if cancels:
                task.cancel()
    stayed = range(0, CLIENTS, 2)
    for number in stayed:
        running[number].result(30)
    wait_for(lambda: not greenlets_of(application).active_count)
    check_nothing_is_lost(world, application)
    stored = stored_tokens(world) - before

    answers = {number: (clients[number].status, json.loads(clients[number].body)) for number in stayed}
    [twice] = [number for number, (status, _) in answers.items() if status != 200]
    assert twice in (2, 4)
    assert answers[twice][1]["error"] == "invalid_grant"
    for number in stayed:
        if number != twice:
            owner = robots[2 if number == 4 else number]
            assert subject(world, answers[number][1]["access_token"]) == owner.id

    # A started request is stored completely: its assertion is used up and its token exists. A queued request leaves
    # nothing.
    begun = 0
    for number in range(1, CLIENTS, 2):
        answer = world.client.exchange_assertion(assertions[number], "openid")
        if answer.status_int == 200:
            check_token_response(answer)
        else:
            check_oauth_error(answer, "invalid_grant")
            begun += 1
    assert begun == (AT_ONCE // 2 if cancels else CLIENTS // 2)
    assert stored == len(stayed) - 1 + begun

    # The service still works.
    after = [
        token_request(world, application, grant_type=JWT_BEARER, assertion=program.assertion(), scope="openid")
        for program in robots
    ]
    for task in [client.begin() for client in after]:
        task.result(30)
    assert {client.status for client in after} == {200}
    check_nothing_is_lost(world, application)


def test_refresh_is_completed_after_disconnect(world: World, application: AsgiApplication) -> None:
    """Otherwise a retry would look like a replay, or two refresh tokens would be valid."""
    client = world.make_web_application()
    tokens = [world.obtain_tokens(client)["refresh_token"] for _ in range(6)]
    clients = [
        token_request(world, application, client.header, grant_type="refresh_token", refresh_token=token)
        for token in tokens
    ]
    with nobody_can_write(world):
        running = [client.begin() for client in clients]
        wait_for(lambda: application._loop is not None and greenlets_of(application).active_count == len(tokens))
        for item in running[1::2]:
            item.cancel()
    for item in running[::2]:
        item.result(30)
    check_nothing_is_lost(world, application)
    for number in range(0, len(tokens), 2):
        assert clients[number].status == 200
        again = json.loads(clients[number].body)["refresh_token"]
        check_token_response(world.refresh(again, client))
    world.clock.advance(hours=1)
    for number in range(1, len(tokens), 2):
        assert clients[number].sent == []
        check_oauth_error(world.refresh(tokens[number], client), "invalid_grant")
