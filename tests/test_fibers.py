"""Fibers of one thread go on in turn, and each that waits lets the others go on."""

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ

import pytest

from identity import fibers
from identity.fibers import Apart, Fibers, Gate


class Loop:
    """Drives fibers as a server does."""

    def __init__(self, *apart: Apart, most: int = 100) -> None:
        self._waked, self._wake = os.pipe()
        self.fibers = Fibers(lambda: os.write(self._wake, b"."), apart, most=most)
        self.fibers.files.register(self._waked, EVENT_READ)
        self.log: list[str] = []

    def run(self, *works: Callable[[], object]) -> list[str]:
        """What they noted, once all are at their end."""
        self.fibers.arrived.extend(works)
        self.fibers.go_round()
        give_up_at = time.monotonic() + 10
        while self.fibers.busy:
            assert time.monotonic() < give_up_at, "somebody waits for ever"
            select.select([self.fibers.files], [], [], self.fibers.until_alarm(1.0))
            if select.select([self._waked], [], [], 0)[0]:
                os.read(self._waked, 100)
            self.fibers.look_at_files()
            self.fibers.go_round()
        return self.log

    def close(self) -> None:
        self.fibers.close()
        os.close(self._waked)
        os.close(self._wake)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def test_who_steps_aside_goes_on_after_all_others(loop: Loop) -> None:
    def work(name: str) -> None:
        for step in range(2):
            loop.log.append(f"{name}{step}")
            fibers.step_aside()

    assert loop.run(*(partial(work, name) for name in "abc")) == ["a0", "b0", "c0", "a1", "b1", "c1"]


def test_in_a_plain_thread_it_does_nothing() -> None:
    assert fibers.current() is None
    fibers.step_aside()
    fibers.sleep(0)
    with ThreadPoolExecutor(1) as pool:
        assert fibers.elsewhere(pool, threading.get_ident) != threading.get_ident()


def test_no_more_work_at_the_same_time_than_allowed() -> None:
    loop = Loop(most=2)

    def work(name: str) -> None:
        loop.log.append(f"{name} begins")
        fibers.step_aside()
        loop.log.append(f"{name} ends")

    assert loop.run(*(partial(work, name) for name in "abc"))[-2:] == ["c begins", "c ends"]
    assert loop.log.index("c begins") > loop.log.index("a ends")
    loop.close()


def test_a_gate_is_opened_by_another_fiber_or_thread(loop: Loop) -> None:
    gates: list[Gate] = []

    def waits() -> None:
        for _ in range(2):
            gates.append(Gate())
            assert gates[-1].wait(5)
            loop.log.append("went through")

    def opens() -> None:
        gates[0].open()
        while len(gates) < 2:
            fibers.step_aside()
        threading.Timer(0.01, gates[1].open).start()

    assert loop.run(waits, opens) == ["went through", "went through"]


def test_who_opens_a_gate_and_steps_aside_goes_on_after_whom_it_let_through(loop: Loop) -> None:
    gates: list[Gate] = []

    def waits(name: str) -> None:
        gates.append(gate := Gate())
        gate.wait()
        loop.log.append(name)

    def opens() -> None:
        for gate in gates:
            gate.open()
        fibers.step_aside()
        loop.log.append("who opened")

    assert loop.run(partial(waits, "a"), partial(waits, "b"), opens) == ["a", "b", "who opened"]


def test_waiting_ends_in_fibers_and_in_threads(loop: Loop) -> None:
    def waits() -> None:
        gate = Gate()
        assert not gate.wait(0.01)
        gate.open()
        fibers.step_aside()
        loop.log.append("opened too late")

    assert loop.run(waits) == ["opened too late"]
    assert not Gate().wait(0.01)


def test_others_go_on_while_one_sleeps_or_has_something_done_elsewhere(loop: Loop) -> None:
    def sleeps() -> None:
        fibers.sleep(0.02)
        loop.log.append("slept")

    def asks() -> None:
        with ThreadPoolExecutor(1) as pool:
            done = threading.Event()
            loop.log.append(fibers.elsewhere(pool, lambda: "done" if done.wait(0.05) else "elsewhere"))

    assert loop.run(sleeps, asks, lambda: loop.log.append("went on")) == ["went on", "slept", "elsewhere"]


def test_a_failure_elsewhere_is_raised_where_it_is_waited_for(loop: Loop) -> None:
    def asks() -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
            fibers.elsewhere(pool, lambda: 1 // 0)
        loop.log.append("raised")

    assert loop.run(asks) == ["raised"]


def test_a_file_is_waited_for(loop: Loop) -> None:
    heard, said = os.pipe()

    def listens() -> None:
        fiber = fibers.current()
        assert fiber is not None
        for _ in range(2):
            assert fiber.fibers.await_file(loop, heard, EVENT_READ) == EVENT_READ
            loop.log.append(os.read(heard, 10).decode())

    def says() -> None:
        for word in (b"one", b"two"):
            os.write(said, word)
            fibers.sleep(0.01)

    assert loop.run(listens, says) == ["one", "two"]
    os.close(heard)
    os.close(said)


def test_a_file_that_is_silent_is_given_up_and_what_it_says_later_wakes_nobody(loop: Loop) -> None:
    heard, said = os.pipe()

    def listens() -> None:
        fiber = fibers.current()
        assert fiber is not None
        assert fiber.fibers.await_file(loop, heard, EVENT_READ, time.monotonic() + 0.01) == 0
        loop.log.append("given up")

    assert loop.run(listens, lambda: loop.log.append("went on")) == ["went on", "given up"]
    os.write(said, b"late")
    assert loop.fibers.look_at_files() is False
    os.close(heard)
    os.close(said)


def test_a_number_may_be_another_file_s_by_now(loop: Loop) -> None:
    numbers = []

    def listens() -> None:
        fiber = fibers.current()
        assert fiber is not None
        for word in (b"one", b"two"):
            heard, said = os.pipe()
            os.write(said, word)
            assert fiber.fibers.await_file(word, heard, EVENT_READ) == EVENT_READ
            loop.log.append(os.read(heard, 10).decode())
            numbers.append(heard)
            os.close(heard)
            os.close(said)

    assert loop.run(listens) == ["one", "two"]
    assert numbers[0] == numbers[1]


def test_a_file_that_nobody_waits_for_any_more_wakes_nobody(loop: Loop) -> None:
    heard, said = os.pipe()

    def listens() -> None:
        fiber = fibers.current()
        assert fiber is not None
        fiber.fibers.await_file(loop, heard, EVENT_READ)

    os.write(said, b"unread")
    loop.run(listens)
    assert loop.fibers.look_at_files() is False
    assert loop.fibers.files.select(0) == []
    os.close(heard)
    os.close(said)


def test_what_each_thread_has_of_its_own_each_fiber_has_too() -> None:
    kept = threading.local()
    kept.names = ["the loop's"]
    loop = Loop(Apart(kept, "names", list))

    def work(name: str) -> None:
        kept.names.append(name)
        fibers.step_aside()
        loop.log.append(str(kept.names))
        kept.names.pop()

    assert loop.run(partial(work, "a"), partial(work, "b")) == ["['a']", "['b']"]
    assert kept.names == ["the loop's"]
    loop.close()


def test_who_fails_holds_up_nobody(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    assert loop.run(lambda: 1 // 0, lambda: loop.log.append("went on")) == ["went on"]
    assert "ZeroDivisionError" in caplog.text


def test_fibers_are_used_again(loop: Loop) -> None:
    seen: set[object] = set()
    for _ in range(5):
        loop.run(lambda: seen.add(fibers.current()))
    assert len(seen) == 1
