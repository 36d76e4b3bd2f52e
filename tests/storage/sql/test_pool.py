"""Connections are handed out in the order in which they were asked for."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy.util.queue import Empty, Full

from identity.plugins.sql import Settings, SqlBackend
from identity.plugins.sql.pool import FairQueue
from identity.storage.contract.factories import an_organization
from identity.storage.contract.transactions import Transactions, committing


def wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.001)


def test_who_waits_longest_is_served_first() -> None:
    queue: FairQueue[str] = FairQueue(2)
    served: list[tuple[int, str]] = []
    threads = [threading.Thread(target=lambda number=number: served.append((number, queue.get()))) for number in (0, 1)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(lambda number=number: len(queue._waiters) == number + 1)
    queue.put("a")
    with pytest.raises(Empty):
        queue.get_nowait()
    threads[0].join(5)
    queue.put("b")
    threads[1].join(5)
    assert served == [(0, "a"), (1, "b")]


def test_what_nobody_waits_for_is_kept_and_the_newest_used_first() -> None:
    queue: FairQueue[str] = FairQueue(2)
    assert queue.empty()
    queue.put_nowait("a")
    queue.put("b")
    assert queue.full()
    assert queue.qsize() == 2
    with pytest.raises(Full):
        queue.put("c")
    assert [queue.get(), queue.get()] == ["b", "a"]


def test_waiting_ends() -> None:
    queue: FairQueue[str] = FairQueue(1)
    with pytest.raises(Empty):
        queue.get(True, 0.01)
    queue.put("later")
    assert queue.get() == "later"


def test_no_writer_starves(sqlite_url: str) -> None:
    backends = [SqlBackend(Settings(url=sqlite_url, busy_timeout=timedelta(seconds=1))) for _ in range(3)]
    transactions = Transactions()
    stop_at = time.monotonic() + 2

    def write(number: int) -> int:
        count = 0
        while time.monotonic() < stop_at:
            with committing(backends[number % 3], transactions) as storage:
                storage.organizations.add(an_organization())
            count += 1
        return count

    with ThreadPoolExecutor(15) as pool:
        counts = list(pool.map(write, range(15)))
    assert min(counts) > 0
    for backend in backends:
        backend.close()
