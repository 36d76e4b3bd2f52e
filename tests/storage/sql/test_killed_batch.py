"""A process, or the server of its database, is killed at any moment while greenlets share a statement that writes."""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import psycopg
import pytest

from identity.domain.tokens import AccessToken
from identity.domain.users import ServiceUser
from identity.plugins.sql import Settings, SqlBackend, psycopg_connection
from identity.storage.contract.base import add
from identity.storage.contract.factories import (
    a_digest,
    a_record,
    a_service_user,
    an_access_token,
    an_id,
    an_organization,
)
from identity.storage.contract.racing import in_greenlets
from identity.storage.contract.transactions import Transactions, committing
from identity.storage.errors import Missing, Unavailable
from identity.testing.postgresql import PostgresqlServer, new_database
from tests.storage.sql.barrier import Barrier
from tests.storage.sql.conftest import open_backend
from tests.storage.sql.killed_process import acknowledged_before_kill

WRITERS = 4
#: In every second process this one is refused, so that each of the others sends a statement of its own.
REFUSED = 2
#: Before each writes, waiting for their one statement, and as many answers; one with a refusal waits more often.
MOMENTS, MORE = 2 * WRITERS + 2, 2 * WRITERS
#: How many tokens are recorded before their server is killed.
ENOUGH = 60


def digest(number: int, name: int) -> bytes:
    return sha256(f"{number}/{name}".encode()).digest()


class Life:
    """A process that writes, acknowledges, and is killed at one of its moments."""

    def __init__(self, url: str, robot: ServiceUser, number: int, acknowledge: int) -> None:
        self._backend = SqlBackend(Settings(url=url))
        self._robot = robot
        self._number = number
        self._acknowledge = acknowledge
        self._moments = count()
        # Half of the processes have a refusal, each of them at every moment.
        self._last = number // 2 % (MOMENTS + number % 2 * MORE)

    def live(self) -> None:
        module: Any = psycopg_connection
        wait = module.wait_for_socket

        def noticed(*arguments: Any) -> Any:
            self._next()
            return wait(*arguments)

        module.wait_for_socket = noticed
        barrier = Barrier(WRITERS)
        in_greenlets([partial(self._write, barrier, name) for name in range(WRITERS)])

    def _write(self, barrier: Barrier, name: int) -> None:
        refused = self._number % 2 == 1 and name == REFUSED
        user = {"user_id": an_id()} if refused else {"user": self._robot}
        token = an_access_token(**user, digest=digest(self._number, name))
        try:
            with committing(self._backend, Transactions()) as storage:
                barrier.last()
                self._next()
                storage.tokens.add_access(token, used=a_record(key=token.digest), last=True)
        except Missing:
            return
        self._next()
        os.write(self._acknowledge, f"{name} ".encode())

    def _next(self) -> None:
        if next(self._moments) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(url: str, robot: ServiceUser, number: int) -> set[int]:
    """Whose writes a process acknowledged before it was killed."""
    return acknowledged_before_kill(lambda writer: Life(url, robot, number, writer).live())


def stored(url: str, table: str, column: str) -> set[bytes]:
    with psycopg.connect(url) as connection:
        return {bytes(value) for (value,) in connection.execute(f"SELECT {column} FROM {table}")}  # noqa: S608


def saved_robot(backend: SqlBackend) -> ServiceUser:
    organization = an_organization()
    robot = a_service_user(organization)
    with committing(backend, Transactions()) as storage:
        for value in (organization, robot):
            add(storage, value)
    return robot


def wait_until_alone(url: str) -> None:
    """Return when the server has noticed that all others are gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while connection.execute(others).fetchone() is not None:
            connection.execute("SELECT pg_sleep(0.02)")


@pytest.mark.parametrize("times", [2 * (MOMENTS + MORE), pytest.param(400, marks=pytest.mark.thorough)])
def test_killed_process_loses_no_acknowledged_write(postgresql_url: str, times: int) -> None:
    backend = open_backend(postgresql_url)
    robot = saved_robot(backend)
    backend.close()
    # Forked from a process with nothing else in it.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        each = list(pool.map(killed, [postgresql_url] * times, [robot] * times, range(times)))
    wait_until_alone(postgresql_url)
    tokens = stored(postgresql_url, "access_tokens", "digest")
    assert tokens == stored(postgresql_url, "records", "key"), "a token and what it used up are written together"
    ends = set()
    for number, acknowledged in enumerate(each):
        found = {name for name in range(WRITERS) if digest(number, name) in tokens}
        assert found >= acknowledged
        if number % 2:
            assert REFUSED not in found
        else:
            assert len(found) in {0, WRITERS}, "those who share a statement share its fate"
            ends.add((len(acknowledged), len(found)))
    assert (0, 0) in ends, "some were killed before the statement"
    assert (0, WRITERS) in ends, "some between the statement and the first answer"
    assert (WRITERS, WRITERS) in ends, "some came to their end"


@pytest.fixture
def own_server() -> Iterator[PostgresqlServer]:
    """A server that waits for its disk, and may be killed."""
    with tempfile.TemporaryDirectory(prefix="identity-killed-") as folder:
        server = PostgresqlServer(Path(folder) / "server")
        yield server
        server.close()


def test_killed_server_loses_no_acknowledged_write(own_server: PostgresqlServer) -> None:
    url = new_database(own_server)
    backend = open_backend(url)
    backend.migrate()
    robot = saved_robot(backend)
    acknowledged: list[AccessToken] = []
    # It drops what it has not written to its log, without a checkpoint.
    killing = Timer(0, os.kill, (own_server.process_id, signal.SIGQUIT))

    def write() -> None:
        while True:
            token = an_access_token(robot, digest=a_digest())
            try:
                with committing(backend, Transactions()) as storage:
                    storage.tokens.add_access(token, used=a_record(key=token.digest), last=True)
            except Unavailable:
                return
            acknowledged.append(token)
            if len(acknowledged) == ENOUGH:
                killing.start()

    in_greenlets([write] * WRITERS)
    killing.join()
    wait_until_gone(own_server.process_id)
    own_server.start()
    tokens = stored(url, "access_tokens", "digest")
    assert tokens >= {token.digest for token in acknowledged}
    assert tokens == stored(url, "records", "key"), "a token and what it used up are written together"
    in_greenlets([partial(record_again, backend, robot)] * WRITERS)
    backend.close()


def wait_until_gone(process_id: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(process_id)
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def record_again(backend: SqlBackend, robot: ServiceUser) -> None:
    """Record a token once the server is back; those who meet a connection that it ended try again."""
    for _ in range(3):
        with suppress(Unavailable), committing(backend, Transactions()) as storage:
            storage.tokens.add_access(an_access_token(robot, digest=a_digest()), used=a_record(), last=True)
            return
    pytest.fail("the server is back")
