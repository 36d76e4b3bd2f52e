"""Hashing passwords without holding up anybody else: a few at a time, a queue with fair shares, then "busy"."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TypeVar

from identity import processors, watching
from identity.concurrency import run_in_executor
from identity.crypto.passwords import Cost, Verdict, hash_password, verify_nothing, verify_password
from identity.domain.errors import DomainError
from identity.fair_shares import FairShares, Full

log = logging.getLogger(__name__)

Result = TypeVar("Result")

#: How many passwords may wait for a worker; of one network, or one organization, a quarter.
LONGEST_QUEUE = 128
BUSY_SECONDS = 5

_NICENESS = 10
_TOO_MANY = "Too many passwords are being checked just now."

#: Entered while a request waits for a hash, or is at a large document. A server whose threads are few lets another
#: one work meanwhile.
stepping_aside: Callable[[], AbstractContextManager[object]] = nullcontext


class Busy(DomainError):
    """Too much of this waits already; ``seconds`` says when to come back."""

    keep_changes = True

    def __init__(self, seconds: int = BUSY_SECONDS, message: str = _TOO_MANY) -> None:
        super().__init__(message)
        self.seconds = seconds


@contextmanager
def holding(shares: FairShares, message: str, *, seconds: int = BUSY_SECONDS, part: str = "") -> Iterator[None]:
    """Hold a place of these meanwhile, while another thread answers requests. Raises Busy with the message."""
    try:
        leave = shares.take(part)
    except Full:
        raise Busy(seconds, message) from None
    try:
        with stepping_aside():
            yield
    finally:
        leave()


#: Documents that are read or written at the same time: each takes a thread, and as long as whoever sends or reads it.
DOCUMENTS_AT_ONCE = 8
_DOCUMENTS = FairShares(DOCUMENTS_AT_ONCE)


def at_document() -> AbstractContextManager[None]:
    """Around the work at a large document, which takes long. Raises Busy."""
    return holding(_DOCUMENTS, "Too many large documents are being read or written just now.")


class Hasher:
    """One per process. Hashes run in threads of their own, at a lower priority than requests; argon2 needs no GIL."""

    def __init__(self, cost: Cost, *, workers: int = 0) -> None:
        self.cost = cost
        self._chosen = workers
        self._inside = 0
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._make_places(1)

    def share(self, processes: int) -> None:
        """Use a part of the processors, as one of so many processes. Called before the first password."""
        self._make_places(processes)

    def _make_places(self, processes: int) -> None:
        # One processor is left to those who only want a token.
        self._workers = self._chosen or max(1, (processors.available() - 1) // processes)
        self._places = FairShares(self._workers + LONGEST_QUEUE)

    def hash(self, password: str) -> str:
        """The hash to store. Raises Busy."""
        return self._run(lambda: hash_password(password, cost=self.cost))

    def verify(self, stored: str | None, password: str) -> Verdict:
        """Whether the password is the one that ``stored`` was made from; None costs the same and matches nothing.

        Raises Busy.
        """
        if stored is None:
            return self._run(lambda: verify_nothing(password, cost=self.cost))
        return self._run(lambda: verify_password(stored, password, cost=self.cost))

    @property
    def load(self) -> watching.Load:
        """How many passwords are hashed at this moment, and how many wait."""
        inside = self._inside
        return watching.Load("passwords", min(inside, self._workers), self._workers, max(0, inside - self._workers))

    def close(self) -> None:
        """End the threads."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, work: Callable[[], Result]) -> Result:
        with holding(self._places, _TOO_MANY):
            self._count(1)
            try:
                with watching.timed(watching.HASH):
                    return run_in_executor(self._threads(), work)
            finally:
                self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            self._inside += more

    def _threads(self) -> ThreadPoolExecutor:
        """Made by the first password, so never before a fork."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._workers, "identity-hashing", _make_way)
            return self._pool


def _make_way() -> None:
    """Lower the priority of the calling thread, where threads have one of their own (Linux)."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
