"""Concurrent requests to one server: each gets its own response, and acknowledged writes are stored.

The event loop answers them in greenlets, and on SQLite they share commits (architecture: Transactions).
"""

import http.client
import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from identity.plugins.sql import SqlBackend
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.clock import TickingClock
from identity.testing.fixtures import DatabaseFactory
from identity.testing.service_test_client import encode_form
from identity.testing.world import World
from tests.http_server import loopback_socket

pytestmark = pytest.mark.storages("sqlite", "postgresql")

CLIENTS = 16
ROOT = Path(__file__).resolve().parents[2]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class ConcurrentClient:
    """A client with its own connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def post(self, url: str, headers: dict[str, str] | None = None, **members: str) -> tuple[int, dict[str, Any]]:
        self._connection.request("POST", urlsplit(url).path, encode_form(members), {**FORM, **(headers or {})})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")

    def close(self) -> None:
        self._connection.close()


def at_once(world: World, act: Callable[[ConcurrentClient, int], Any], times: int = CLIENTS) -> list[Any]:
    """The results of clients that all start at the same moment."""
    port = urlsplit(world.client.discovery["issuer"]).port
    assert port is not None
    barrier = threading.Barrier(times)

    def run(number: int) -> Any:
        asking = ConcurrentClient(port)
        barrier.wait(30)
        try:
            return act(asking, number)
        finally:
            asking.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))


@pytest.mark.thorough
def test_concurrent_requests_get_their_own_responses(served: World) -> None:
    robots = [served.make_service_user_program() for _ in range(CLIENTS)]
    token = served.client.discovery["token_endpoint"]

    def gets_a_token(asking: ConcurrentClient, number: int) -> list[str]:
        answers = [
            asking.post(
                token,
                grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer",
                assertion=robots[number].assertion(),
                scope="openid",
            )
            for _ in range(5)
        ]
        assert [status for status, _ in answers] == [200] * 5
        return [answer["access_token"] for _, answer in answers]

    tokens = at_once(served, gets_a_token)
    for robot, robot_tokens in zip(robots, tokens, strict=True):
        for item in robot_tokens:
            assert served.client.fetch_userinfo(item).json["sub"] == robot.id
    assert len({item for token in tokens for item in token}) == 5 * CLIENTS


def test_concurrent_code_redemption_succeeds_once(served: World) -> None:
    """Security 5.2 and 5.3, also for requests that share a commit."""
    application = served.make_web_application()
    form = {"grant_type": "authorization_code", **served.make_code(application, scope="openid offline_access").form()}
    _, known = served.client_credentials(application)
    token = served.client.discovery["token_endpoint"]
    answers = at_once(served, lambda asking, _: asking.post(token, known, **form))
    assert Counter(status for status, _ in answers) == {200: 1, 400: CLIENTS - 1}
    [brought] = [answer["access_token"] for status, answer in answers if status == 200]
    assert {answer["error"] for status, answer in answers if status == 400} == {"invalid_grant"}
    assert served.client.fetch_userinfo(brought).status_int == 401, "the replays have ended what the first use brought"


def test_concurrent_assertion_use_succeeds_once(served: World) -> None:
    """Security 2.6."""
    robot, token = served.make_service_user_program(), served.client.discovery["token_endpoint"]
    assertion = robot.assertion(jti="once")
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion, "scope": "openid"}
    answers = at_once(served, lambda asking, _: asking.post(token, **form))
    assert Counter(status for status, _ in answers) == {200: 1, 400: CLIENTS - 1}


@contextmanager
def failing_commits(world: World) -> Iterator[None]:
    """SQLite refuses to commit, as on a full disk."""
    backend = world.identity.backend
    assert isinstance(backend, SqlBackend)
    pool = backend._open_pools().writer.pool
    link = pool.acquire()

    def refuse(action: int, argument: str | None, *_: object) -> int:
        refused = action == sqlite3.SQLITE_TRANSACTION and argument == "COMMIT"
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    link.driver.set_authorizer(refuse)
    pool.release(link)
    yield
    link = pool.acquire()
    link.driver.set_authorizer(None)
    pool.release(link)


@pytest.mark.storages("sqlite")
def test_failed_group_commit_fails_every_request_in_it(served: World) -> None:
    robot, token = served.make_service_user_program(), served.client.discovery["token_endpoint"]

    def ask(asking: ConcurrentClient, number: int) -> tuple[int, dict[str, Any]]:
        assertion = robot.assertion(jti=f"number {number}")
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        return asking.post(token, grant_type=grant, assertion=assertion, scope="openid")

    with failing_commits(served):
        failed = at_once(served, ask)
    assert {(status, answer["error"]) for status, answer in failed} == {(503, "temporarily_unavailable")}
    assert [status for status, _ in at_once(served, ask)] == [200] * CLIENTS, "no jti was used up"


#: Serves at a port until it is killed.
NODE = """
import pickle, sys, warnings
from identity.testing.clock import TickingClock
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.world import World
from tests.asgi_server import server_of
settings, port = pickle.load(sys.stdin.buffer)
world = World(settings, clock=TickingClock(), key_pool=RsaKeyPool(0))
server_of(world.app, port=port).run()
"""


class WorldProcess:
    """A process that serves the world."""

    def __init__(self, world: World, port: int) -> None:
        self._process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", NODE], stdin=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps((world.settings, port)))
        self._process.stdin.close()
        give_up_at = time.monotonic() + 60
        while True:
            with suppress(OSError):
                asking = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                asking.request("GET", "/healthz")
                assert asking.getresponse().status == 200
                asking.close()
                return
            assert time.monotonic() < give_up_at
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill without a chance to write anything."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.exhaustive)])
def test_acknowledged_writes_survive_a_kill(
    database_factory: DatabaseFactory, key_pool: RsaKeyPool, storage_name: str, times: int
) -> None:
    """Security 9.1: the ledger of tokens, rotations and revocations is exact, no matter when the service is killed."""
    with loopback_socket() as bound:
        port = bound.getsockname()[1]
    settings = database_factory.new_database_settings(storage_name) | {
        "identity.development": "true",
        "identity.issuer_url": f"http://127.0.0.1:{port}",
    }
    world = World(settings, clock=TickingClock(), key_pool=key_pool)
    world.bootstrap()
    application, robot = world.make_web_application(), world.make_service_user_program()
    _, known = world.client_credentials(application)
    discovery = world.client.discovery
    chance = random.Random(times)  # noqa: S311 - any moment will do
    for _ in range(times):
        chains = [world.obtain_tokens(application)["refresh_token"] for _ in range(CLIENTS)]
        node = WorldProcess(world, port)
        live: list[str] = []
        revoked: list[str] = []
        rotated: list[list[str]] = [[chain] for chain in chains]

        def works_until_it_ends(number: int) -> None:
            asking = ConcurrentClient(port)
            with suppress(OSError, http.client.HTTPException, ValueError):
                while True:
                    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
                    token, revocation = discovery["token_endpoint"], discovery["revocation_endpoint"]
                    _, response = asking.post(token, grant_type=grant, assertion=robot.assertion(), scope="openid")
                    live.append(response["access_token"])  # noqa: B023
                    used = rotated[number][-1]  # noqa: B023
                    status, two = asking.post(token, known, grant_type="refresh_token", refresh_token=used)
                    assert status == 200
                    rotated[number].append(two["refresh_token"])  # noqa: B023
                    status, _ = asking.post(revocation, known, token=two["access_token"])
                    assert status == 200
                    revoked.append(two["access_token"])  # noqa: B023
            asking.close()

        threads = [threading.Thread(target=works_until_it_ends, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        enough = chance.randint(CLIENTS, 6 * CLIENTS)
        while len(live) < enough and any(thread.is_alive() for thread in threads):
            time.sleep(0.001)
        node.kill()
        for thread in threads:
            thread.join(60)
        assert len(live) >= enough, "it ended before it was killed"
        for item in live:
            assert world.client.fetch_userinfo(item).status_int == 200
        for item in revoked:
            assert world.client.fetch_userinfo(item).status_int == 401
        for chain in rotated:
            # The last one may have been used by an unacknowledged request.
            if len(chain) > 1:
                assert world.refresh(chain[-2], application).json["error"] == "invalid_grant"
    world.close()
    database_factory.drop(settings)
