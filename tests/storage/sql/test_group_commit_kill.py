"""A process is killed at any moment while its writers share a commit."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import pytest

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.storage import SqlStorage
from identity.storage.contract import factories as make
from identity.storage.contract.race_runner import run_in_greenlets
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import DuplicateValue
from tests.storage.sql.killed_process import acknowledged_before_kill

WRITERS = 6
#: This writer is refused after it has written.
REFUSED = 3
#: Starting a turn, two organizations with three search terms each and ending it for each writer, one commit, and an
#: acknowledgement for each.
MOMENTS = 11 * WRITERS + 2


class Life:
    """A process that writes, acknowledges, and is killed at one of these moments."""

    def __init__(self, url: str, number: int, acknowledge: int) -> None:
        self._backend = SqlBackend(SqlPluginSettings(url=url))
        self._transactions = ContractTransactionManager()
        self._number = number
        self._acknowledge = acknowledge
        self._moments = count()
        self._last = number % MOMENTS

    def live(self) -> None:
        run_in_greenlets([lambda name=name: self._write(name) for name in range(WRITERS)])  # type: ignore[misc]

    def _write(self, name: int) -> None:
        try:
            with committed_transaction(self._backend, self._transactions) as storage:
                assert isinstance(storage, SqlStorage)
                storage.connection.driver.set_trace_callback(self._next)
                for row in range(2):
                    storage.organizations.add(make.organization(name=str((self._number * WRITERS + name) * 2 + row)))
                if name == REFUSED:
                    raise DuplicateValue("name")
        except DuplicateValue:
            return
        self._next()
        os.write(self._acknowledge, f"{name} ".encode())

    def _next(self, _statement: str = "") -> None:
        if next(self._moments) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(url: str, number: int) -> set[int]:
    """The writers whose writes a process acknowledged before it was killed."""
    return acknowledged_before_kill(lambda writer: Life(url, number, writer).live())


def all_killed(url: str, times: int) -> dict[int, set[int]]:
    """The results by number. A separate small process forks them, which is ten times as fast."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return dict(zip(range(times), pool.map(killed, [url] * times, range(times)), strict=True))


def rows(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as connection:
        yield from (name for (name,) in connection.execute("SELECT name FROM organizations"))


@pytest.mark.parametrize("times", [2 * MOMENTS, pytest.param(10 * MOMENTS, marks=pytest.mark.exhaustive)])
def test_acknowledged_writes_are_complete_after_a_kill(sqlite_url: str, times: int) -> None:
    acknowledged = all_killed(sqlite_url, times)
    found: dict[int, dict[int, int]] = {number: {} for number in range(times)}
    for stored in rows(Path(sqlite_url.removeprefix("sqlite:///"))):
        number, name = divmod(int(stored) // 2, WRITERS)
        found[number][name] = found[number].get(name, 0) + 1
    for number in range(times):
        assert set(found[number]) >= acknowledged[number], "what was acknowledged is there"
        assert set(found[number].values()) <= {2}, "a request's writes are there whole or not at all"
        assert REFUSED not in found[number]
        assert set(found[number]) in (set(), set(range(WRITERS)) - {REFUSED}), "those who share a commit share its fate"
    ends = [(len(acknowledged[number]), len(found[number])) for number in range(times)]
    assert (0, 0) in ends, "some were killed before the commit"
    assert (0, WRITERS - 1) in ends, "some between the commit and the first answer"
    assert (WRITERS - 1, WRITERS - 1) in ends, "some came to their end"
