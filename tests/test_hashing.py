"""Hasher: a few passwords at a time, a short queue, then busy; and whoever waits steps aside."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from identity import hashing
from identity.crypto.passwords import Cost, Verdict
from identity.hashing import LONGEST_QUEUE, Busy, Hasher

CHEAP = Cost(memory_kib=19456, iterations=2)


@pytest.fixture
def hasher() -> Iterator[Hasher]:
    made = Hasher(CHEAP, workers=1)
    yield made
    made.close()


def test_what_was_hashed_is_recognised(hasher: Hasher) -> None:
    stored = hasher.hash("correct horse")
    assert hasher.verify(stored, "correct horse") == Verdict(matches=True, outdated=False)
    assert not hasher.verify(stored, "correct house").matches


def test_nobody_costs_a_hash_too(hasher: Hasher, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(
        hashing, "verify_nothing", lambda password, cost: hashed.append(password) or Verdict(False, False)
    )
    assert not hasher.verify(None, "anything").matches
    assert hashed == ["anything"]


def test_a_hash_of_another_cost_is_outdated(hasher: Hasher) -> None:
    dearer = Hasher(Cost(), workers=1)
    assert dearer.verify(hasher.hash("correct horse"), "correct horse").outdated
    dearer.close()


def test_beyond_the_queue_it_is_busy(hasher: Hasher, monkeypatch: pytest.MonkeyPatch) -> None:
    """One at work and the queue full: the next one hears so at once, and there is room again afterwards."""
    go_on = threading.Event()
    monkeypatch.setattr(hashing, "hash_password", lambda password, cost: go_on.wait(30) and "$hash$")
    waiting = LONGEST_QUEUE + 1
    with ThreadPoolExecutor(waiting) as threads:
        begun = threading.Barrier(waiting + 1)

        def ask() -> str:
            begun.wait(30)
            return hasher.hash("x")

        answers = [threads.submit(ask) for _ in range(waiting)]
        begun.wait(30)
        refused = 0
        while not refused:
            # As soon as all of them have their places.
            if not hasher._places._all.free:
                with pytest.raises(Busy) as busy:
                    hasher.hash("x")
                refused += 1
                assert busy.value.seconds > 0
        go_on.set()
        assert [answer.result(30) for answer in answers] == ["$hash$"] * waiting
    assert hasher.hash("x") == "$hash$"


def test_whoever_waits_steps_aside(hasher: Hasher, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    @contextmanager
    def step() -> Iterator[None]:
        steps.append("aside")
        yield
        steps.append("back")

    monkeypatch.setattr(hashing, "stepping_aside", step)
    hasher.hash("x")
    assert steps == ["aside", "back"]


def test_a_failure_gives_the_place_back(hasher: Hasher, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(password: str, cost: Cost) -> str:
        raise MemoryError

    monkeypatch.setattr(hashing, "hash_password", fail)
    for _ in range(LONGEST_QUEUE + 5):
        with pytest.raises(MemoryError):
            hasher.hash("x")


def test_processes_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.processors.available", lambda: 9)
    for processes, threads in ((1, 8), (2, 4), (9, 1)):
        hasher = Hasher(CHEAP)
        hasher.share(processes)
        assert hasher._workers == threads
