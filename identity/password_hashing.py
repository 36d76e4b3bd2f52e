"""Hashes passwords in few threads with a fair queue; beyond that, requests get "busy"."""

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TypeVar

from identity import cpu_count, instrumentation
from identity.concurrency import run_in_executor
from identity.crypto.argon2id import Argon2Cost, HashVerification, hash_password, verify_dummy, verify_password
from identity.crypto.imported_hashes import IMPORTED_PREFIX, HashScheme, compute_decoys, verify_imported
from identity.domain.errors import DomainError
from identity.fair_semaphore import FairSemaphore, NoFreeSlot

log = logging.getLogger(__name__)

Result = TypeVar("Result")

#: Passwords that may wait for a thread; a network or organization gets a quarter.
MAX_QUEUED_PASSWORDS = 128
RETRY_AFTER_SECONDS = 5

_NICENESS = 10
_TOO_MANY = "Too many passwords are being checked just now."

#: Entered while a request waits for a hash or works on a large document. A server with few threads lets another request
#: run meanwhile.
released_slot: Callable[[], AbstractContextManager[object]] = nullcontext


class ServerBusy(DomainError):
    """Too much is queued; ``seconds`` is when to retry."""

    commits_transaction = True

    def __init__(self, seconds: int = RETRY_AFTER_SECONDS, message: str = _TOO_MANY) -> None:
        super().__init__(message)
        self.seconds = seconds


@contextmanager
def acquire_slot(
    shares: FairSemaphore, message: str, *, seconds: int = RETRY_AFTER_SECONDS, part: str = ""
) -> Iterator[None]:
    """Hold a slot inside the block while another thread answers requests. Raises ServerBusy with the message."""
    try:
        leave = shares.acquire(part)
    except NoFreeSlot:
        raise ServerBusy(seconds, message) from None
    try:
        with released_slot():
            yield
    finally:
        leave()


#: Large documents in progress: each takes a thread for as long as the client sends or reads.
MAX_CONCURRENT_DOCUMENTS = 8
_DOCUMENT_SEMAPHORE = FairSemaphore(MAX_CONCURRENT_DOCUMENTS)


def acquire_document_slot() -> AbstractContextManager[None]:
    """Hold a slot for work on a large document. Raises ServerBusy."""
    return acquire_slot(_DOCUMENT_SEMAPHORE, "Too many large documents are being read or written just now.")


class PasswordHasher:
    """One per process. Hashes run in threads of lower priority than requests; argon2 releases the GIL."""

    def __init__(self, cost: Argon2Cost, *, workers: int = 0) -> None:
        self.cost = cost
        self._configured_workers = workers
        self._active = 0
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._create_semaphore(1)

    @staticmethod
    def released_slot() -> AbstractContextManager[object]:
        """Entered while a request waits for another service: a server with few threads lets another one run."""
        return released_slot()

    def set_process_count(self, processes: int) -> None:
        """Use a share of the processors, as one of ``processes`` processes. Call it before the first password."""
        self._create_semaphore(processes)

    def _create_semaphore(self, processes: int) -> None:
        # One processor is left for requests without a password.
        self._workers = self._configured_workers or max(1, (cpu_count.available_cpus() - 1) // processes)
        self._semaphore = FairSemaphore(self._workers + MAX_QUEUED_PASSWORDS)

    def hash(self, password: str) -> str:
        """The hash to store. Raises ServerBusy."""
        return self._run(lambda: hash_password(password, cost=self.cost))

    def verify(self, stored: str | None, password: str, *, decoys: Collection[HashScheme] = ()) -> HashVerification:
        """Compare the password with the ``stored`` hash. None costs the same and never matches. ``decoys`` are the
        schemes of imported hashes: every verification does their work.

        Raises ServerBusy.
        """
        return self._run(lambda: self._verify(stored, password, decoys))

    def _verify(self, stored: str | None, password: str, decoys: Collection[HashScheme]) -> HashVerification:
        if stored is not None and stored.startswith(IMPORTED_PREFIX):
            return verify_imported(stored, password, cost=self.cost, decoys=decoys)
        compute_decoys(password, decoys)
        if stored is None:
            return verify_dummy(password, cost=self.cost)
        return verify_password(stored, password, cost=self.cost)

    @property
    def pool_usage(self) -> instrumentation.PoolUsage:
        inside = self._active
        return instrumentation.PoolUsage(
            "passwords", min(inside, self._workers), self._workers, max(0, inside - self._workers)
        )

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, work: Callable[[], Result]) -> Result:
        with acquire_slot(self._semaphore, _TOO_MANY):
            self._change_active(1)
            try:
                with instrumentation.measure_duration(instrumentation.Measurement.HASH):
                    return run_in_executor(self._thread_pool(), work)
            finally:
                self._change_active(-1)

    def _change_active(self, more: int) -> None:
        with self._lock:
            self._active += more

    def _thread_pool(self) -> ThreadPoolExecutor:
        """Created for the first password, so never before a fork."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._workers, "identity-hashing", _lower_thread_priority)
            return self._pool


def _lower_thread_priority() -> None:
    """Lower the priority of the calling thread, where threads have priorities (Linux)."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
