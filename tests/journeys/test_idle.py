"""While nobody asks the service anything, it asks its database nothing: two workers, with metrics."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faults.client import Tally
from faults.ledger import Ledger
from faults.load import under_load
from faults.nodes import Nodes, placed
from faults.servers import Postgresql
from faults.stock import Stock, prepared

pytestmark = pytest.mark.thorough

#: Longer than any span between two looks of a thread or process at anything.
WATCHED = 12.0
_WINDOWS = 4


class Watched(Postgresql):
    """PostgreSQL, the service with metrics."""

    settings = {"identity.plugin.metrics.listen": "127.0.0.1:0"}  # noqa: RUF012


@pytest.fixture
def database() -> Iterator[Watched]:
    # Not below pytest's folders: the server may run as another user.
    with tempfile.TemporaryDirectory(prefix="identity-idle-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with closing(Watched(folder)) as database:
            yield database


@pytest.fixture
def nodes(database: Watched) -> Iterator[Nodes]:
    with placed(database.folder, database, 1, {}, workers=2) as nodes:
        yield nodes


def asked(database: Watched) -> tuple[Any, ...]:
    """When each connection was last asked something, and how many there have been."""
    elsewhere = database.direct_url.replace(f"/{database.database}?", "/postgres?")
    with psycopg.connect(elsewhere, autocommit=True) as connection:
        activity = (
            "SELECT pid, backend_start, state_change, query FROM pg_stat_activity WHERE datname = %s ORDER BY pid"
        )
        sessions = "SELECT sessions FROM pg_stat_database WHERE datname = %s"
        connections = connection.execute(activity, [database.database]).fetchall()
        return tuple(connections), connection.execute(sessions, [database.database]).fetchone()


def some_load(stock: Stock, nodes: Nodes) -> Tally:
    tally = Tally()
    with under_load(stock, nodes.ports, nodes.host, tally, Ledger()):
        time.sleep(3)
    return tally


def test_an_idle_service_asks_its_database_nothing(database: Watched, nodes: Nodes) -> None:
    stock = prepared(nodes[0].ini)
    nodes.start()
    assert some_load(stock, nodes).offences == []
    # What requests have left to do in the background comes to its end.
    for _ in range(_WINDOWS):
        before = asked(database)
        time.sleep(WATCHED)
        after = asked(database)
        if after == before:
            break
    assert before[0], "connections are kept"
    assert after == before
    assert some_load(stock, nodes).offences == []
    assert asked(database) != before
