"""Greenlets of an event loop run in turn; while one waits, the others continue."""

import asyncio
import gc
import os
import socket
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

import pytest
from greenlet import getcurrent
from sqlalchemy.util import await_only

from identity.concurrency import (
    Event,
    GreenletPool,
    await_,
    greenlet_event_loop,
    in_greenlet,
    run_in_executor,
    sleep,
    wait_for_socket,
)

CONTEXT_VALUE: ContextVar[str] = ContextVar("WORD", default="none")


def run(*functions: Callable[[], Any], limit: int = 100) -> list[Any]:
    """The results of the functions, all run at the same time."""

    async def gathered() -> list[Any]:
        greenlets = GreenletPool(limit)
        return await asyncio.wait_for(asyncio.gather(*map(greenlets.run, functions)), 10)

    return asyncio.run(gathered())


@pytest.fixture
def log() -> list[str]:
    return []


def test_sleep_zero_continues_after_all_that_are_ready(log: list[str]) -> None:
    def work(name: str) -> None:
        for step in range(2):
            log.append(f"{name}{step}")
            sleep(0)

    run(*(partial(work, name) for name in "abc"))
    assert log == ["a0", "b0", "c0", "a1", "b1", "c1"]


def test_result_and_error_of_a_function_that_waits_or_not() -> None:
    def fails(seconds: float | None) -> None:
        if seconds is not None:
            sleep(seconds)
        raise ZeroDivisionError

    async def both() -> None:
        greenlets = GreenletPool()
        assert await greenlets.run(lambda: "at once") == "at once"
        assert await greenlets.run(lambda: sleep(0) or "later") == "later"  # type: ignore[func-returns-value]
        for seconds in (None, 0, 0.01):
            with pytest.raises(ZeroDivisionError):
                await greenlets.run(partial(fails, seconds))
        assert greenlets.active_count == 0

    asyncio.run(both())


def test_plain_thread_waits_as_threads_do() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert not in_greenlet()
    assert greenlet_event_loop() is None
    sleep(0)
    sleep(0.001)
    assert await_(answer()) == 42
    assert not Event().wait(0.01)
    with ThreadPoolExecutor(1) as pool:
        assert run_in_executor(pool, threading.get_ident) != threading.get_ident()
        event = Event()
        pool.submit(event.set)
        assert event.wait(5)


def test_limit_and_its_line(log: list[str]) -> None:
    def work(name: str) -> None:
        log.append(f"{name} begins")
        sleep(0)
        log.append(f"{name} ends")

    run(*(partial(work, name) for name in "abcd"), limit=2)
    assert log[:2] == ["a begins", "b begins"]
    assert [line for line in log if line.endswith("begins")] == [f"{name} begins" for name in "abcd"]
    assert log.index("c begins") > log.index("a ends")
    assert log.index("d begins") > log.index("b ends")


def test_cancelled_in_line_never_begins(log: list[str]) -> None:
    async def main() -> None:
        greenlets = GreenletPool(1)
        go_on = Event()
        tasks = [asyncio.create_task(greenlets.run(go_on.wait))]
        tasks += [asyncio.create_task(greenlets.run(partial(log.append, name))) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        go_on.set()
        # Cancelled after the pool has already granted it the free greenlet.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.wait(tasks, timeout=5)
        assert greenlets.active_count == 0

    asyncio.run(main())
    assert "a" not in log
    assert log[-1] == "c"


def test_cancelling_drops_the_result_only(log: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        greenlets = GreenletPool()

        def work(then: Callable[[], object]) -> None:
            sleep(0.01)
            log.append("ended")
            then()

        tasks = [asyncio.create_task(greenlets.run(partial(work, then))) for then in (lambda: None, lambda: 1 // 0)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5)
        assert all(task.cancelled() for task in tasks)
        assert (log, greenlets.active_count) == ([], 2)
        await asyncio.sleep(0.05)
        assert greenlets.active_count == 0

    asyncio.run(main())
    assert log == ["ended", "ended"]
    assert caplog.text.count("ZeroDivisionError") == 1


def test_context_variables_of_the_caller_are_seen_and_changes_end_with_the_function() -> None:
    values: list[str] = []

    def work(name: str) -> None:
        values.append(CONTEXT_VALUE.get())
        CONTEXT_VALUE.set(name)
        for wait in (partial(sleep, 0), partial(sleep, 0.01), partial(await_only, asyncio.sleep(0))):
            wait()
            values.append(CONTEXT_VALUE.get())

    async def main() -> None:
        greenlets = GreenletPool()
        CONTEXT_VALUE.set("caller's")
        await asyncio.gather(*(greenlets.run(partial(work, name)) for name in "ab"))
        await greenlets.run(partial(work, "c"))
        assert CONTEXT_VALUE.get() == "caller's"

    asyncio.run(main())
    assert sorted(values) == ["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["caller's"] * 3


@pytest.mark.thorough
def test_context_values_are_freed_at_the_end() -> None:
    class Referent:
        pass

    variable: ContextVar[Referent] = ContextVar("held")

    def work() -> "weakref.ref[Referent]":
        referent = Referent()
        variable.set(referent)
        sleep(0)
        return weakref.ref(referent)

    async def main() -> None:
        found = await GreenletPool().run(work)
        gc.collect()
        assert found() is None

    asyncio.run(main())


def test_await_returns_result_or_error_while_others_continue(log: list[str]) -> None:
    async def answer(error: Exception | None) -> int:
        await asyncio.sleep(0.01)
        if error is not None:
            raise error
        return 42

    def asks(waits: Callable[[Any], Any]) -> None:
        assert waits(answer(None)) == 42
        with pytest.raises(ZeroDivisionError):
            waits(answer(ZeroDivisionError()))
        log.append("asked")

    run(partial(asks, await_), partial(asks, await_only), lambda: log.append("continued"))
    assert log == ["continued", "asked", "asked"]


def test_event_is_set_by_greenlets_and_threads(log: list[str]) -> None:
    events = [Event(), Event()]

    def waits() -> None:
        for event in events:
            assert event.wait(5)
            log.append("continued")

    def sets() -> None:
        events[0].set()
        sleep(0.01)
        threading.Timer(0.01, events[1].set).start()

    run(waits, waits, sets)
    assert log == ["continued"] * 4


def test_setter_that_sleeps_zero_continues_after_those_it_woke(log: list[str]) -> None:
    event = Event()

    def waits(name: str) -> None:
        event.wait()
        log.append(name)

    def sets() -> None:
        event.set()
        sleep(0)
        log.append("setter")

    run(partial(waits, "a"), partial(waits, "b"), sets)
    assert log == ["a", "b", "setter"]


def test_event_times_out_and_is_set_later(log: list[str]) -> None:
    def waits() -> None:
        event = Event()
        assert not event.wait(0.01)
        assert not event._waiters
        event.set()
        sleep(0)
        assert event.wait(0)
        log.append("once")

    run(waits)
    waits()
    assert log == ["once", "once"]


def test_event_set_by_many_threads_while_many_wait() -> None:
    for _ in range(50):
        event = Event()
        with ThreadPoolExecutor(4) as pool:
            for _ in range(4):
                pool.submit(event.set)
            assert run(*[partial(event.wait, 5)] * 10) == [True] * 10


def test_others_continue_while_an_executor_works(log: list[str]) -> None:
    def asks() -> None:
        with ThreadPoolExecutor(1) as pool:
            log.append(run_in_executor(pool, lambda: threading.Event().wait(0.03) or "worked"))
            with pytest.raises(ZeroDivisionError):
                run_in_executor(pool, lambda: 1 // 0)

    run(asks, lambda: log.append("continued"))
    assert log == ["continued", "worked"]


def test_socket_is_waited_for(log: list[str]) -> None:
    ours, peer = socket.socketpair()

    def listens() -> None:
        for _ in range(2):
            assert wait_for_socket(ours.fileno(), EVENT_READ) == EVENT_READ
            log.append(ours.recv(10).decode())
        assert wait_for_socket(ours.fileno(), EVENT_READ | EVENT_WRITE, 1.0) == EVENT_WRITE

    def speaks() -> None:
        for message in (b"one", b"two"):
            peer.send(message)
            sleep(0.01)

    run(listens, speaks)
    assert log == ["one", "two"]
    ours.close()
    peer.close()


def test_silent_socket_times_out_and_late_data_wakes_nothing(log: list[str]) -> None:
    ours, peer = socket.socketpair()

    def listens() -> None:
        assert wait_for_socket(ours.fileno(), EVENT_READ, 0.01) == 0
        log.append("given up")
        peer.send(b"late")
        sleep(0.01)
        log.append("slept")

    run(listens, lambda: log.append("continued"))
    assert log == ["continued", "given up", "slept"]
    ours.close()
    peer.close()


def test_descriptor_may_be_of_another_socket_by_now() -> None:
    numbers = []

    def listens() -> None:
        for message in (b"one", b"two"):
            ours, write_end = os.pipe()
            os.write(write_end, message)
            assert wait_for_socket(ours, EVENT_READ, 5) == EVENT_READ
            assert os.read(ours, 10) == message
            numbers.append(ours)
            os.close(ours)
            os.close(write_end)

    run(listens)
    assert numbers[0] == numbers[1]


def test_greenlets_are_used_again() -> None:
    contexts: set[object] = set()

    async def main() -> None:
        greenlets = GreenletPool()
        for wait in (None, 0, 0.001):
            await greenlets.run(lambda wait=wait: contexts.add(getcurrent()) or (wait is not None and sleep(wait)))  # type: ignore[misc,func-returns-value]

    asyncio.run(main())
    assert len(contexts) == 1


def test_greenlet_is_not_resumed_in_the_callback_of_a_socket_or_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """libuv (uvloop) keeps lists in its stack frame: changing readers or timers in the callback crashes the process."""
    callbacks: list[str] = []
    resumed: list[list[str]] = []

    def marked(register: Callable[..., Any], callback_at: int) -> Callable[..., Any]:
        def register_marked(*arguments: Any) -> Any:
            received = list(arguments)
            callback = received[callback_at]

            def run(*values: Any) -> None:
                callbacks.append(register.__name__)
                callback(*values)
                callbacks.pop()

            received[callback_at] = run
            return register(*received)

        return register_marked

    def waits(descriptor: int) -> None:
        assert wait_for_socket(descriptor, EVENT_WRITE) == EVENT_WRITE
        resumed.append([*callbacks])
        assert wait_for_socket(descriptor, EVENT_READ, 0.001) == 0
        resumed.append([*callbacks])
        sleep(0.001)
        resumed.append([*callbacks])

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for name in ("add_reader", "add_writer", "call_later"):
            monkeypatch.setattr(loop, name, marked(getattr(loop, name), 1))
        first, other = socket.socketpair()
        with first, other:
            await GreenletPool(1).run(lambda: waits(first.fileno()))

    asyncio.run(main())
    assert resumed == [[], [], []]
