"""Worker: background work, in one thread per process, asleep when nothing is due."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

log = logging.getLogger(__name__)


@dataclass
class Job:
    """Something to do now and then."""

    name: str
    interval: timedelta
    run: Callable[[], object]
    due: float = 0.0


class Worker:
    """Woken by requests: while nobody asks anything, nothing runs and the database hears nothing.

    The thread is started by the first wake-up, so never before a fork.
    """

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # The first look comes soon after the first request, not before its answer.
        self._next_due = time.monotonic() + 1.0
        for job in jobs:
            job.due = self._next_due

    def wake(self) -> None:
        """Let the thread look whether something is due. Costs next to nothing when it is not."""
        if time.monotonic() >= self._next_due and not self._wanted.is_set():
            self._start()
            self._wanted.set()

    @property
    def stopping(self) -> bool:
        """True once the process is about to end: long jobs look here between two steps."""
        return self._stopping.is_set()

    def stop(self, timeout: float = 5.0) -> None:
        """Let the running job come to the end of its step, then end the thread."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def run_due(self) -> None:
        """Run every job whose time has come; a failing one is logged and tried again after its interval."""
        for job in self._jobs:
            if time.monotonic() < job.due or self._stopping.is_set():
                continue
            try:
                job.run()
            except Exception:
                log.exception("background work failed: %s", job.name)
            job.due = time.monotonic() + job.interval.total_seconds()
        self._next_due = min((job.due for job in self._jobs), default=float("inf"))

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="identity-worker", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait()
            if not self._stopping.is_set():
                self.run_due()
            self._wanted.clear()
