"""A PostgreSQL primary and a standby that follows it."""

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from psycopg import sql

from identity.plugins.sql import SqlPluginSettings
from identity.plugins.sql import standby as standby_module
from identity.testing.postgresql import PostgresqlServer, new_database, running_server
from tests.process_tree import signal_process_tree

Value = TypeVar("Value")

#: The allowed staleness, and the polling interval in seconds, shorter than the default so that tests wait less.
STALENESS = timedelta(minutes=5)
INTERVAL = 0.3


@dataclass(frozen=True)
class StandbyPair:
    """A primary and the standby that follows it."""

    primary: PostgresqlServer
    standby: PostgresqlServer

    def settings(self, **changed: object) -> SqlPluginSettings:
        """Settings with a new database, without a schema."""
        url = new_database(self.primary)
        standby_settings = {"standby_url": self.standby_url(url), "standby_staleness": STALENESS, **changed}
        return SqlPluginSettings(url=url, **standby_settings)  # type: ignore[arg-type]

    def standby_url(self, url: str) -> str:
        """The URL of the same database on the standby."""
        return self.standby.url(urlsplit(url).path.lstrip("/"))

    def pause(self) -> None:
        """Pause replication."""
        self.standby.execute(sql.SQL("SELECT pg_wal_replay_pause()"))

    def resume(self) -> None:
        """Resume replication."""
        self.standby.execute(sql.SQL("SELECT pg_wal_replay_resume()"))

    def send(self, number: int) -> None:
        """Send a signal to all processes of the standby."""
        signal_process_tree(self.standby.process_id, number)


def make_standby_pair(stack: ExitStack) -> StandbyPair:
    """Start two servers, which stop with ``stack``."""
    primary, standby = (Path(tempfile.mkdtemp(prefix="identity-postgresql-")) for _ in range(2))
    server = stack.enter_context(running_server(primary))
    server.copy_data_to(standby)
    return StandbyPair(server, stack.enter_context(running_server(standby)))


@pytest.fixture(scope="module")
def shared_pair() -> Iterator[StandbyPair]:
    with ExitStack() as stack:
        yield make_standby_pair(stack)


@pytest.fixture
def pair(shared_pair: StandbyPair) -> Iterator[StandbyPair]:
    """The shared servers, which are restored afterwards."""
    yield shared_pair
    shared_pair.send(signal.SIGCONT)
    shared_pair.resume()


@pytest.fixture
def own_pair() -> Iterator[StandbyPair]:
    """Two servers of its own, for a test that stops one."""
    with ExitStack() as stack:
        yield make_standby_pair(stack)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll every INTERVAL."""
    monkeypatch.setattr(standby_module, "_POLL_SECONDS", INTERVAL)


class PairClock:
    """The clock that measures the age of the standby's data. It runs, and can be advanced."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def advance(self, span: timedelta) -> None:
        self._ahead += span.total_seconds()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PairClock:
    clock = PairClock()
    monkeypatch.setattr(standby_module, "time", clock)
    return clock


def until(found: Callable[[], Value | None]) -> Value:
    """Poll until a value is found, and return it."""
    while (value := found()) is None:
        time.sleep(0.02)
    return value
