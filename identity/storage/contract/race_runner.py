"""Races: one attempt made many times concurrently, each time in a transaction of its own.

Backends that several processes can share are raced over processes with several threads each, as in production; the
others over threads. If requests may wait for the backend in greenlets, half of the attempts run concurrently in an
event loop in one more thread. An attempt is a picklable callable that takes a Storage and the attempt's number: a
function of an importable module, its other arguments bound with functools.partial.

Attempts that fail with a retryable error are repeated, as requests are.
"""

import asyncio
import multiprocessing
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar, cast

from identity.concurrency import GreenletPool
from identity.storage.backend import Backend, Storage
from identity.storage.contract.transaction_manager import (
    ContractTransactionManager,
    committed_transaction,
    is_retryable,
)
from identity.storage.errors import StorageError

Attempt = Callable[[Storage, int], object]
ResultT = TypeVar("ResultT")

PROCESSES = 3
THREADS_PER_PROCESS = 4
#: Seconds after which a race is given up that does not start or end.
TIMEOUT_SECONDS = 60
#: Maximum repetitions of an attempt that keeps losing.
MAX_TRIES = 100


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """Result of one attempt: a value, or the name of a storage error (or the traceback of another exception)."""

    number: int
    value: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class RaceResult:
    outcomes: tuple[AttemptOutcome, ...]

    @property
    def committed(self) -> list[AttemptOutcome]:
        return [outcome for outcome in self.outcomes if not outcome.error]

    @property
    def values(self) -> list[Any]:
        return [outcome.value for outcome in self.committed]

    @property
    def errors(self) -> dict[str, int]:
        return dict(Counter(outcome.error for outcome in self.outcomes if outcome.error))

    def single_winner(self, *, losers: str) -> AttemptOutcome:
        """The only winner; fails unless there is exactly one and all others ended with the error ``losers``."""
        assert len(self.committed) == 1, (
            f"exactly one attempt must win, but {len(self.committed)} did; errors: {self.errors}"
        )
        expected = {losers: len(self.outcomes) - 1}
        assert self.errors == expected, f"all other attempts must raise {losers}: {self.errors}"
        return self.committed[0]


def race_in_threads(backend: Backend, attempt: Attempt, times: int) -> RaceResult:
    threads = PROCESSES * THREADS_PER_PROCESS
    return RaceResult(tuple(_run_attempts(backend, attempt, range(times), threads, lambda: None)))


class RaceWorkers:
    """Worker processes for races; spawned once, since spawning takes longer than a race."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._start = context.Barrier(PROCESSES)
        self._pipes: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        for _ in range(PROCESSES):
            ours, connection = context.Pipe()
            process = context.Process(target=_worker_main, args=(connection, self._start), daemon=True)
            process.start()
            connection.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def race(self, reopen: Callable[[], Backend], attempt: Attempt, times: int) -> RaceResult:
        """Run the attempt ``times`` times, distributed over the processes, each of which opens the backend itself."""
        self._start.reset()
        for index, pipe in enumerate(self._pipes):
            pipe.send((reopen, attempt, range(times)[index::PROCESSES]))
        answers: list[list[AttemptOutcome] | str] = [
            pipe.recv() if pipe.poll(TIMEOUT_SECONDS) else "no answer from a worker process" for pipe in self._pipes
        ]
        failures = [answer for answer in answers if isinstance(answer, str)]
        assert not failures, "the race did not take place:\n" + "\n".join(failures)
        return RaceResult(tuple(outcome for answer in answers if not isinstance(answer, str) for outcome in answer))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
                process.join()
            process.close()


def _worker_main(pipe: Connection, start: Barrier) -> None:
    """Run races in a worker process until the pipe is closed; a failure is returned as text."""
    while True:
        answer: list[AttemptOutcome] | str
        try:
            reopen, attempt, numbers = pipe.recv()
            backend: Backend = reopen()
            try:
                backend.check()
                answer = _run_attempts(backend, attempt, numbers, THREADS_PER_PROCESS, lambda: _wait_for_start(start))
            finally:
                backend.close()
        except EOFError:
            return
        except Exception:
            start.abort()
            answer = traceback.format_exc()
        pipe.send(answer)


def _wait_for_start(start: Barrier) -> None:
    start.wait(TIMEOUT_SECONDS)


def _run_attempts(
    backend: Backend, attempt: Attempt, numbers: Sequence[int], threads: int, start: Callable[[], None]
) -> list[AttemptOutcome]:
    """Run the numbered attempts in several threads, which start together after ``start`` has returned."""
    transactions = ContractTransactionManager()
    in_loop = numbers[::2] if backend.max_greenlets else ()
    in_threads = numbers[1::2] if in_loop else numbers
    barrier = threading.Barrier(threads + bool(in_loop), action=start)

    def run(mine: Sequence[int], run_attempts: Callable[..., list[AttemptOutcome]]) -> list[AttemptOutcome]:
        barrier.wait(TIMEOUT_SECONDS)
        return run_attempts([partial(_run_attempt, backend, transactions, attempt, number) for number in mine])

    with ThreadPoolExecutor(threads + 1) as pool:
        lanes = [pool.submit(run, in_threads[index::threads], _run_sequentially) for index in range(threads)]
        if in_loop:
            lanes.append(pool.submit(run, in_loop, partial(run_in_greenlets, limit=backend.max_greenlets)))
        return [outcome for lane in lanes for outcome in lane.result()]


def _run_sequentially(works: Sequence[Callable[[], AttemptOutcome]]) -> list[AttemptOutcome]:
    return [work() for work in works]


def run_in_greenlets(works: Sequence[Callable[[], ResultT]], *, limit: int = 100) -> list[ResultT]:
    """Results of the functions, run in greenlets of one event loop, at most ``limit`` at a time. Raises the exception
    of the first function that failed, once all are done."""

    async def run() -> list[ResultT | BaseException]:
        greenlets = GreenletPool(limit)
        return await asyncio.gather(*map(greenlets.run, works), return_exceptions=True)

    # Without the thread's current transaction.
    ended = Context().run(asyncio.run, run())
    for item in ended:
        if isinstance(item, BaseException):
            raise item
    return cast("list[ResultT]", ended)


def _run_attempt(
    backend: Backend, transactions: ContractTransactionManager, attempt: Attempt, number: int
) -> AttemptOutcome:
    outcome = AttemptOutcome(number)
    for _ in range(MAX_TRIES):
        try:
            with committed_transaction(backend, transactions) as storage:
                value = attempt(storage, number)
            return AttemptOutcome(number, value)
        except StorageError as error:
            outcome = AttemptOutcome(number, error=type(error).__name__)
            if not is_retryable(error):
                break
        except Exception:
            return AttemptOutcome(number, error=traceback.format_exc())
    return outcome
