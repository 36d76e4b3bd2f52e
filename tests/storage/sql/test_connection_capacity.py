"""The connection limit of a server: the check reports how many are needed, and callers wait for a free one."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from transaction import TransactionManager

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import StorageUnavailable
from identity.testing.postgresql import PostgresqlServer, new_database

if TYPE_CHECKING:
    from identity.testing.mariadb import MariadbServer

MOST = 12
#: The default of PostgreSQL without the connections reserved for superusers.
USUAL = 97
RACERS = 100


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresqlServer]:
    """A server with a low connection limit."""
    with tempfile.TemporaryDirectory(prefix="identity-small-") as folder:
        settings = f"fsync = off\nmax_connections = {MOST}\nsuperuser_reserved_connections = 2\n"
        server = PostgresqlServer(Path(folder) / "server", settings)
        yield server
        server.close()


@pytest.fixture(scope="module")
def small_mariadb() -> Iterator["MariadbServer"]:
    """A server of its own: the pools of other tests keep connections to the shared one."""
    from identity.testing import mariadb

    with mariadb.running_server() as server:
        server.execute(f"SET GLOBAL max_connections = {MOST}")
        yield server


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.thorough)])
def crowded(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database whose server allows fewer connections than one process may open."""
    if request.param == "postgresql":
        yield new_database(request.getfixturevalue("small_server"))
        return
    from identity.testing import mariadb

    yield mariadb.new_database(request.getfixturevalue("small_mariadb"))


@pytest.mark.thorough
def test_full_server_refuses_no_concurrent_request(crowded: str) -> None:
    settings = SqlPluginSettings(url=crowded, pool_timeout=timedelta(minutes=5), lock_timeout=timedelta(minutes=5))
    backend = SqlBackend(settings)
    assert settings.pool_size > MOST
    backend.migrate()
    backend.check()
    organizations = [make.organization() for _ in range(RACERS)]

    def write_and_look(number: int) -> bool:
        """Like a request: look up on one connection, then write on another."""
        with committed_transaction(backend, ContractTransactionManager()) as storage:
            storage.organizations.add(organizations[number])
            with backend.read_session() as reading:
                reading.organizations.find("of nobody")
        return True

    with ThreadPoolExecutor(RACERS) as threads:
        assert list(threads.map(write_and_look, range(RACERS))) == [True] * RACERS
    with backend.read_session() as reading:
        assert len(reading.organizations.find_many([organization.id for organization in organizations])) == RACERS
    backend.close()


@pytest.mark.thorough
def test_full_server_is_reported_after_timeout(small_server: PostgresqlServer) -> None:
    url = new_database(small_server)
    first = SqlBackend(SqlPluginSettings(url=url, database_connections=2 * MOST))
    first.migrate()
    second = SqlBackend(SqlPluginSettings(url=url, pool_timeout=timedelta(milliseconds=50)))
    readings = [first.read_session() for _ in range(MOST)]
    for reading in readings:
        reading.__enter__()
    with pytest.raises(StorageUnavailable, match="no connection left"):
        second.check()
    for reading in readings:
        reading.__exit__(None, None, None)
    first.close()
    second.check()
    second.close()


def test_process_respects_its_connection_limit(small_server: PostgresqlServer) -> None:
    url = new_database(small_server)
    settings = SqlPluginSettings(url=url, database_connections=6, pool_timeout=timedelta(milliseconds=50))
    backend = SqlBackend(settings)
    backend.migrate()
    with ExitStack() as stack:
        for _ in range(settings.pool_size):
            stack.enter_context(backend.read_session())
            manager = TransactionManager(explicit=True)
            stack.enter_context(manager)
            backend.join_transaction(manager).organizations.add(make.organization())
        with pytest.raises(StorageUnavailable, match="busy"):
            backend.check()
        with (
            pytest.raises(StorageUnavailable, match="busy"),
            committed_transaction(backend, ContractTransactionManager()),
        ):
            pytest.fail("there is one more to write by")
        with psycopg.connect(url) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            assert connection.execute(query).fetchone() == (settings.database_connections + 1,)
    backend.close()


def test_defaults_fit_a_server_as_it_is_installed_with_three_workers() -> None:
    settings = SqlPluginSettings(url="postgresql://identity@db/identity")
    assert 3 * settings.database_connections <= USUAL


def test_connections_of_all_processes_are_compared_with_the_limit(small_server: PostgresqlServer) -> None:
    url = new_database(small_server)
    SqlBackend(SqlPluginSettings(url=url)).migrate()

    def warning(processes: int, **settings: int) -> str | None:
        backend = SqlBackend(SqlPluginSettings(url=url, **settings))  # type: ignore[arg-type]
        problem = backend.connection_limit_problem(processes)
        backend.close()
        return problem

    assert warning(1, database_connections=10) is None
    problem = str(warning(2, database_connections=10))
    assert "2 processes × 10 (identity.plugin.sql.database_connections) are up to 20" in problem
    assert f"the server gives {MOST - 2} (max_connections" in problem
    assert warning(50, pooler=True) is None
    database = sql.Identifier(url.partition("?")[0].rpartition("/")[2])
    small_server.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 7").format(database))
    assert "gives 7 (CONNECTION LIMIT of the database" in str(warning(1, database_connections=10))
    assert warning(1, database_connections=6) is None


def test_sqlite_and_a_roomy_mariadb_have_enough(sqlite_url: str, mariadb_url: str) -> None:
    for url, processes in ((sqlite_url, 1000), (mariadb_url, 3)):
        backend = SqlBackend(SqlPluginSettings(url=url))
        assert backend.connection_limit_problem(processes) is None
        backend.close()
    backend = SqlBackend(SqlPluginSettings(url=mariadb_url))
    assert "server gives 500 (max_connections" in str(backend.connection_limit_problem(100))
    backend.close()
