"""A service without requests sends no queries: two workers, with metrics."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faults.database_servers import PostgresqlFaultServer
from faults.http_client import ResponseTally
from faults.ledger import Ledger
from faults.mixed_load import run_mixed_load
from faults.seed_data import SeedData, create_seed_data
from faults.service_nodes import ServiceNodes, create_nodes

pytestmark = pytest.mark.thorough

#: Seconds; longer than any polling interval of a thread or process.
WATCHED = 12.0
_WINDOWS = 4


class IdleService(PostgresqlFaultServer):
    """The service with metrics on PostgreSQL."""

    settings = {"identity.plugin.metrics.listen": "127.0.0.1:0"}  # noqa: RUF012


@pytest.fixture
def database() -> Iterator[IdleService]:
    # Not in pytest's folders, because the server may run as another user.
    with tempfile.TemporaryDirectory(prefix="identity-idle-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with closing(IdleService(folder)) as database:
            yield database


@pytest.fixture
def nodes(database: IdleService) -> Iterator[ServiceNodes]:
    with create_nodes(database.folder, database, 1, {}, workers=2) as nodes:
        yield nodes


def query_counts(database: IdleService) -> tuple[Any, ...]:
    """The time of the last query on each connection, and the number of connections."""
    other_url = database.direct_url.replace(f"/{database.database}?", "/postgres?")
    with psycopg.connect(other_url, autocommit=True) as connection:
        activity = (
            "SELECT pid, backend_start, state_change, query FROM pg_stat_activity WHERE datname = %s ORDER BY pid"
        )
        sessions = "SELECT sessions FROM pg_stat_database WHERE datname = %s"
        connections = connection.execute(activity, [database.database]).fetchall()
        return tuple(connections), connection.execute(sessions, [database.database]).fetchone()


def some_load(stock: SeedData, nodes: ServiceNodes) -> ResponseTally:
    tally = ResponseTally()
    with run_mixed_load(stock, nodes.ports, nodes.host, tally, Ledger()):
        time.sleep(3)
    return tally


def test_idle_service_sends_no_queries(database: IdleService, nodes: ServiceNodes) -> None:
    stock = create_seed_data(nodes[0].ini)
    nodes.start()
    assert some_load(stock, nodes).violations == []
    # Let background work of earlier requests end first.
    for _ in range(_WINDOWS):
        before = query_counts(database)
        time.sleep(WATCHED)
        after = query_counts(database)
        if after == before:
            break
    assert before[0], "connections are kept"
    assert after == before
    assert some_load(stock, nodes).violations == []
    assert query_counts(database) != before
