"""Worker: background work, in one thread for all that is quick and one each for what takes long."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from identity.storage.errors import StorageUnavailable

log = logging.getLogger(__name__)

#: How soon a job that was to run by itself is tried again after it failed.
_RETRY_DELAY = timedelta(seconds=30)


@dataclass
class BackgroundJob:
    """Something to do now and then, once requests come in and ``interval`` is over.

    ``run`` may return a span: then it runs again after that one, even if nobody asks anything meanwhile. A job that
    waits for other machines, or takes long, runs ``has_own_thread``: then none of the others waits for it.
    """

    name: str
    interval: timedelta
    run: Callable[[], timedelta | None]
    has_own_thread: bool = False
    due_at: float = 0.0
    wake_at: float | None = None
    failing_since: float | None = None


class BackgroundWorker:
    """Woken by requests: while nobody asks anything and no job waits, nothing runs and the database hears nothing.

    A thread is started by its first wake-up, so never before a fork.
    """

    def __init__(self, jobs: list[BackgroundJob]) -> None:
        self._jobs = [job for job in jobs if not job.has_own_thread]
        self._others = [BackgroundWorker([replace(job, has_own_thread=False)]) for job in jobs if job.has_own_thread]
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        #: What runs, when it last gave a sign of life, and when the thread was last called to look.
        self._running: str | None = None
        self._heartbeat_at = self._woken_at = 0.0
        # The first look comes soon after the first request, not before its answer.
        soon = time.monotonic() + 1.0
        for job in self._jobs:
            job.due_at = soon
        self._next_due = soon if self._jobs else float("inf")

    def wake(self) -> None:
        """Let the thread look whether something is due. Costs next to nothing when it is not."""
        if time.monotonic() >= self._next_due and not self._wanted.is_set():
            self._start()
            self._woken_at = time.monotonic()
            self._wanted.set()
        for worker in self._others:
            worker.wake()

    def run_now(self, name: str) -> None:
        """Have the job of this name run at once, in its thread; nothing if there is none of this name."""
        for worker in self._others:
            worker.run_now(name)
        job = next((job for job in self._jobs if job.name == name), None)
        if job is not None and not self._stopping.is_set():
            job.due_at = self._next_due = 0.0
            job.wake_at = time.monotonic()
            self._start()
            if not self._wanted.is_set():
                self._woken_at = time.monotonic()
            self._wanted.set()

    @property
    def is_stopping(self) -> bool:
        """True once the process is about to end: long jobs look here between two steps, which is their sign of life."""
        for worker in (self, *self._others):
            if worker._thread is threading.current_thread():
                worker._heartbeat_at = time.monotonic()
        return self._stopping.is_set()

    def hung_jobs(self, limit: timedelta) -> dict[str, timedelta]:
        """The jobs that have given no sign of life for longer than this, or were called and do not begin; and for how
        long."""
        found = {}
        now = time.monotonic()
        for worker in (self, *self._others):
            # Read once: its thread goes on meanwhile.
            running, waits = worker._running, worker._wanted.is_set() and not worker._stopping.is_set()
            name = running or min(worker._jobs, key=lambda job: job.due_at).name if worker._jobs else ""
            silent = now - (worker._heartbeat_at if running else worker._woken_at if waits else now)
            if silent > limit.total_seconds():
                found[name] = timedelta(seconds=round(silent))
        return found

    def failing_jobs(self, limit: timedelta) -> dict[str, timedelta]:
        """The jobs that have only failed for longer than this, and for how long."""
        now = time.monotonic()
        since = {job.name: job.failing_since for worker in (self, *self._others) for job in worker._jobs}
        ages = {name: timedelta(seconds=round(now - began)) for name, began in since.items() if began is not None}
        return {name: age for name, age in ages.items() if age > limit}

    def stop(self, timeout: float = 5.0) -> None:
        """Let running jobs come to the end of their step, then end the threads; none is waited for any longer."""
        everyone = (self, *self._others)
        for worker in everyone:
            worker._stopping.set()
            worker._wanted.set()
        end = time.monotonic() + timeout
        for worker in everyone:
            if worker._thread is not None:
                worker._thread.join(max(0.0, end - time.monotonic()))

    def run_due(self) -> None:
        """Run every job whose time has come; a failing one is logged and tried again after its interval."""
        for job in self._jobs:
            if time.monotonic() < job.due_at or self._stopping.is_set():
                continue
            # Before it runs: whoever calls it meanwhile has seen something that it may have passed already.
            job.due_at = time.monotonic() + job.interval.total_seconds()
            rang, job.wake_at = job.wake_at is not None, None
            self._heartbeat_at, self._running = time.monotonic(), job.name
            failing_since, job_failed = job.failing_since or time.monotonic(), True
            try:
                again = job.run()
                job_failed = False
            except StorageUnavailable as problem:
                log.warning("background work waits: %s: %s", job.name, problem)
                again = _RETRY_DELAY if rang else None
            except Exception:
                log.exception("background work failed: %s", job.name)
                again = _RETRY_DELAY if rang else None
            finally:
                self._running = None
                job.failing_since = failing_since if job_failed else None
            if again is not None:
                job.wake_at = time.monotonic() + again.total_seconds()
                job.due_at = min(job.due_at, job.wake_at)
        self._next_due = min((job.due_at for job in self._jobs), default=float("inf"))
        for worker in self._others:
            worker.run_due()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="identity-worker", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait(self._seconds_until_wake())
            # Before the work: a call during it must not be lost.
            self._wanted.clear()
            if not self._stopping.is_set():
                self.run_due()

    def _seconds_until_wake(self) -> float | None:
        """Seconds until a job has to run by itself; None if none has to."""
        alarms = [job.wake_at for job in self._jobs if job.wake_at is not None]
        return max(0.0, min(alarms) - time.monotonic()) if alarms else None
