"""Connections are assigned in the order of the requests for them."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.connection_pool import ConnectionPool
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import StorageUnavailable


class FakeConnection:
    """The attributes of a connection that a pool uses."""

    def __init__(self) -> None:
        self.is_broken = self.closed = self.ended = False

    @property
    def is_usable(self) -> bool:
        return not self.is_broken

    def has_unread_data(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.closed = True


def make_pool(*, size: int = 2, wait: float = 5.0, opens: Callable[[], Any] = FakeConnection) -> ConnectionPool:
    return ConnectionPool(opens, size=size, wait=wait)


def wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.001)


def test_longest_waiter_gets_the_connection_first() -> None:
    pool = make_pool(size=1)
    connection = pool.acquire()
    served: list[int] = []

    def use(number: int) -> None:
        mine = pool.acquire()
        served.append(number)
        pool.release(mine)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(lambda number=number: len(pool._waiters) == number + 1)  # type: ignore[misc]
    pool.release(connection)
    for thread in threads:
        thread.join(5)
    assert served == [0, 1, 2]
    assert pool.acquire() is connection


def test_idle_connections_are_pooled_and_newest_used_first() -> None:
    pool = make_pool(size=3)
    connections = [pool.acquire() for _ in range(3)]
    assert pool.in_use == 3
    for connection in connections:
        pool.release(connection)
    assert [pool.acquire(), pool.acquire()] == [connections[2], connections[1]]


def test_waiting_ends() -> None:
    pool = make_pool(size=1, wait=0.01)
    connection = pool.acquire()
    with pytest.raises(StorageUnavailable, match="busy"):
        pool.acquire()
    pool.release(connection)
    assert pool.acquire() is connection


def test_broken_connection_is_never_reused() -> None:
    pool = make_pool(size=1)
    first: Any = pool.acquire()
    first.is_broken = True
    pool.release(first)
    second: Any = pool.acquire()
    pool.release(second)
    second.ended = True
    third: Any = pool.acquire()
    assert first.closed
    assert second.closed
    assert not third.closed
    assert pool.in_use == 1


def test_waiter_replaces_a_broken_connection() -> None:
    pool = make_pool(size=1)
    broken: Any = pool.acquire()
    connections: list[Any] = []
    thread = threading.Thread(target=lambda: connections.append(pool.acquire()))
    thread.start()
    wait_until(lambda: len(pool._waiters) == 1)
    broken.is_broken = True
    pool.release(broken)
    thread.join(5)
    assert broken.closed
    assert [item.closed for item in connections] == [False]
    assert pool.in_use == 1


def test_connection_that_cannot_be_opened_leaves_its_place_to_others() -> None:
    answers: list[Any] = [OSError("away"), FakeConnection()]

    def opens() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    pool = make_pool(size=1, opens=opens, wait=0.01)
    with pytest.raises(OSError, match="away"):
        pool.acquire()
    assert pool.in_use == 0
    assert not pool.acquire().closed  # type: ignore[attr-defined]


def test_checked_out_connection_closes_on_return_to_a_closed_pool() -> None:
    pool = make_pool()
    idle: Any
    used: Any
    idle, used = pool.acquire(), pool.acquire()
    pool.release(idle)
    pool.close()
    assert idle.closed
    assert not used.closed
    pool.release(used)
    assert used.closed


@pytest.mark.thorough
def test_no_writer_starves(sqlite_url: str) -> None:
    backends = [SqlBackend(SqlPluginSettings(url=sqlite_url, busy_timeout=timedelta(seconds=1))) for _ in range(3)]
    transactions = ContractTransactionManager()
    stop_at = time.monotonic() + 2

    def write(number: int) -> int:
        count = 0
        while time.monotonic() < stop_at:
            with committed_transaction(backends[number % 3], transactions) as storage:
                storage.organizations.add(make.organization())
            count += 1
        return count

    with ThreadPoolExecutor(15) as pool:
        counts = list(pool.map(write, range(15)))
    assert min(counts) > 0
    for backend in backends:
        backend.close()


class PoolExhausted(Exception):
    """The server has no free connection."""


def make_full_pool(room: list[int], **settings: Any) -> ConnectionPool:
    """A pool whose server allows ``room`` connections."""

    class Counted(FakeConnection):
        def close(self) -> None:
            super().close()
            room[0] += 1

    def opens() -> Any:
        if not room[0]:
            raise PoolExhausted
        room[0] -= 1
        return Counted()

    return ConnectionPool(
        opens, is_limit_error=lambda error: isinstance(error, PoolExhausted), **{"size": 5, "wait": 60.0, **settings}
    )


def test_full_server_makes_callers_wait_for_a_connection() -> None:
    pool = make_full_pool([1])
    connection = pool.acquire()
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(pool.acquire)
        wait_until(lambda: len(pool._waiters) == 1)
        pool.release(connection)
        assert second.result(60) is connection
    assert pool.in_use == 1


def test_connection_freed_by_another_process_is_used() -> None:
    room = [0]
    pool = make_full_pool(room)
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(pool.acquire) for _ in range(3)]
        wait_until(lambda: len(pool._waiters) == 3)
        room[0] = 3
        assert len({future.result(60) for future in waiting}) == 3
    assert pool.in_use == 3


def test_persistently_full_server_is_reported() -> None:
    pool = make_full_pool([0], wait=0.01)
    with pytest.raises(PoolExhausted):
        pool.acquire()
    assert (pool.in_use, len(pool._waiters)) == (0, 0)
