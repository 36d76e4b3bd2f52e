"""A process, or its database server, is killed at any moment while greenlets share a writing statement."""

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
from identity.plugins.sql import SqlBackend, SqlPluginSettings, psycopg_connection
from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_digest, make_id
from identity.storage.contract.harness import add
from identity.storage.contract.race_runner import run_in_greenlets
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import RowNotFound, StorageUnavailable
from identity.testing.postgresql import PostgresqlServer, new_database
from tests.storage.sql.conftest import open_backend
from tests.storage.sql.greenlet_barrier import GreenletBarrier
from tests.storage.sql.killed_process import acknowledged_before_kill

WRITER_COUNT = 4
#: In every second process this writer is refused, after which each of the others sends its own statement.
REFUSED_WRITER = 2
#: Before each write, while waiting for the shared statement, and before each acknowledgement. A refusal adds more
#: waits.
KILL_POINTS, EXTRA_KILL_POINTS = 2 * WRITER_COUNT + 2, 2 * WRITER_COUNT
#: The number of tokens recorded before the server is killed.
MIN_TOKENS_BEFORE_KILL = 60


def token_digest(number: int, name: int) -> bytes:
    return sha256(f"{number}/{name}".encode()).digest()


class WriterProcess:
    """A process that writes, acknowledges, and is killed at one of its kill points."""

    def __init__(self, url: str, service_user: ServiceUser, number: int, acknowledge: int) -> None:
        self._backend = SqlBackend(SqlPluginSettings(url=url))
        self._service_user = service_user
        self._number = number
        self._acknowledge = acknowledge
        self._kill_points = count()
        # Half of the processes have a refused writer; each half is killed at every kill point.
        self._kill_point = number // 2 % (KILL_POINTS + number % 2 * EXTRA_KILL_POINTS)

    def run(self) -> None:
        module: Any = psycopg_connection
        wait = module.wait_for_socket

        def noticed(*arguments: Any) -> Any:
            self._kill_if_reached()
            return wait(*arguments)

        module.wait_for_socket = noticed
        barrier = GreenletBarrier(WRITER_COUNT)
        run_in_greenlets([partial(self._write, barrier, name) for name in range(WRITER_COUNT)])

    def _write(self, barrier: GreenletBarrier, name: int) -> None:
        refused = self._number % 2 == 1 and name == REFUSED_WRITER
        user = {"user_id": make_id()} if refused else {"user": self._service_user}
        token = make.access_token(**user, digest=token_digest(self._number, name))
        try:
            with committed_transaction(self._backend, ContractTransactionManager()) as storage:
                barrier.wait()
                self._kill_if_reached()
                storage.tokens.add_access_token(
                    token, consumed_record=make.record(key=token.digest), is_last_write=True
                )
        except RowNotFound:
            return
        self._kill_if_reached()
        os.write(self._acknowledge, f"{name} ".encode())

    def _kill_if_reached(self) -> None:
        if next(self._kill_points) == self._kill_point:
            os.kill(os.getpid(), signal.SIGKILL)


def run_until_killed(url: str, service_user: ServiceUser, number: int) -> set[int]:
    """The writers whose writes the process acknowledged before it was killed."""
    return acknowledged_before_kill(lambda writer: WriterProcess(url, service_user, number, writer).run())


def read_column(url: str, table: str, column: str) -> set[bytes]:
    with psycopg.connect(url) as connection:
        return {bytes(value) for (value,) in connection.execute(f"SELECT {column} FROM {table}")}  # noqa: S608


def store_service_user(backend: SqlBackend) -> ServiceUser:
    organization = make.organization()
    robot = make.service_user(organization)
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in (organization, robot):
            add(storage, value)
    return robot


def wait_for_other_connections_to_end(url: str) -> None:
    """Return when the server has noticed that all other connections are gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while connection.execute(query).fetchone() is not None:
            connection.execute("SELECT pg_sleep(0.02)")


@pytest.mark.parametrize(
    "times", [2 * (KILL_POINTS + EXTRA_KILL_POINTS), pytest.param(400, marks=pytest.mark.exhaustive)]
)
def test_killed_process_loses_no_acknowledged_write(postgresql_url: str, times: int) -> None:
    backend = open_backend(postgresql_url)
    robot = store_service_user(backend)
    backend.close()
    # Forks are fast from a process that has nothing else in memory.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        numbers = list(pool.map(run_until_killed, [postgresql_url] * times, [robot] * times, range(times)))
    wait_for_other_connections_to_end(postgresql_url)
    tokens = read_column(postgresql_url, "access_tokens", "digest")
    assert tokens == read_column(postgresql_url, "records", "key"), "a token and what it used up are written together"
    ends = set()
    for number, acknowledged in enumerate(numbers):
        found = {name for name in range(WRITER_COUNT) if token_digest(number, name) in tokens}
        assert found >= acknowledged
        if number % 2:
            assert REFUSED_WRITER not in found
        else:
            assert len(found) in {0, WRITER_COUNT}, "those who share a statement share its fate"
            ends.add((len(acknowledged), len(found)))
    assert (0, 0) in ends, "some were killed before the statement"
    assert (0, WRITER_COUNT) in ends, "some between the statement and the first answer"
    assert (WRITER_COUNT, WRITER_COUNT) in ends, "some came to their end"


@pytest.fixture
def own_server() -> Iterator[PostgresqlServer]:
    """A server with fsync enabled, which a test may kill."""
    with tempfile.TemporaryDirectory(prefix="identity-killed-") as folder:
        server = PostgresqlServer(Path(folder) / "server")
        yield server
        server.close()


def test_killed_server_loses_no_acknowledged_write(own_server: PostgresqlServer) -> None:
    url = new_database(own_server)
    backend = open_backend(url)
    backend.migrate()
    robot = store_service_user(backend)
    acknowledged: list[AccessToken] = []
    # An immediate shutdown without a checkpoint discards everything that is not in the WAL.
    killing = Timer(0, os.kill, (own_server.process_id, signal.SIGQUIT))

    def write() -> None:
        while True:
            token = make.access_token(robot, digest=make_digest())
            try:
                with committed_transaction(backend, ContractTransactionManager()) as storage:
                    storage.tokens.add_access_token(
                        token, consumed_record=make.record(key=token.digest), is_last_write=True
                    )
            except StorageUnavailable:
                return
            acknowledged.append(token)
            if len(acknowledged) == MIN_TOKENS_BEFORE_KILL:
                killing.start()

    run_in_greenlets([write] * WRITER_COUNT)
    killing.join()
    wait_until_gone(own_server.process_id)
    own_server.start()
    tokens = read_column(url, "access_tokens", "digest")
    assert tokens >= {token.digest for token in acknowledged}
    assert tokens == read_column(url, "records", "key"), "a token and what it used up are written together"
    run_in_greenlets([partial(store_token_again, backend, robot)] * WRITER_COUNT)
    backend.close()


def wait_until_gone(process_id: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(process_id)
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def store_token_again(backend: SqlBackend, service_user: ServiceUser) -> None:
    """Record a token after the server has restarted; retry on connections that the kill ended."""
    for _ in range(3):
        with suppress(StorageUnavailable), committed_transaction(backend, ContractTransactionManager()) as storage:
            storage.tokens.add_access_token(
                make.access_token(service_user, digest=make_digest()), consumed_record=make.record(), is_last_write=True
            )
            return
    pytest.fail("the server is back")
