"""Runs background jobs: one thread for quick jobs and one thread for each slow job."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from identity.storage.errors import StorageUnavailable

log = logging.getLogger(__name__)

#: Delay before a failed self-scheduled job is retried.
_RETRY_DELAY = timedelta(seconds=30)


@dataclass
class BackgroundJob:
    """A job that runs when a request has arrived and ``interval`` has passed.

    ``run`` may return a delay after which it runs again even without requests. A job that waits for other machines
    or takes long sets ``has_own_thread``, so that it does not delay the others.
    """

    name: str
    interval: timedelta
    run: Callable[[], timedelta | None]
    has_own_thread: bool = False
    due_at: float = 0.0
    wake_at: float | None = None
    failing_since: float | None = None


class BackgroundWorker:
    """Woken by requests: while there are none and no job is scheduled, nothing runs and the database is not queried.

    Its first wake-up starts a thread, so none is started before a fork.
    """

    def __init__(self, jobs: list[BackgroundJob]) -> None:
        self._jobs = [job for job in jobs if not job.has_own_thread]
        self._own_threads = [
            BackgroundWorker([replace(job, has_own_thread=False)]) for job in jobs if job.has_own_thread
        ]
        self._wake_up = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        #: The running job, its last heartbeat, and when the thread was last woken.
        self._running: str | None = None
        self._heartbeat_at = self._woken_at = 0.0
        # The first check runs shortly after the first request, not before its response.
        soon = time.monotonic() + 1.0
        for job in self._jobs:
            job.due_at = soon
        self._next_due = soon if self._jobs else float("inf")

    def wake(self) -> None:
        """Let the thread check for due jobs. Cheap when nothing is due."""
        if time.monotonic() >= self._next_due and not self._wake_up.is_set():
            self._start()
            self._woken_at = time.monotonic()
            self._wake_up.set()
        for worker in self._own_threads:
            worker.wake()

    def run_now(self, name: str) -> None:
        """Run the named job at once, in its thread. Does nothing if there is no such job."""
        for worker in self._own_threads:
            worker.run_now(name)
        job = next((job for job in self._jobs if job.name == name), None)
        if job is not None and not self._stopping.is_set():
            job.due_at = self._next_due = 0.0
            job.wake_at = time.monotonic()
            self._start()
            if not self._wake_up.is_set():
                self._woken_at = time.monotonic()
            self._wake_up.set()

    def schedule(self, name: str, delay: timedelta) -> None:
        """Run the named job after ``delay`` at the latest, in its thread, also if no request arrives."""
        for worker in self._own_threads:
            worker.schedule(name, delay)
        job = next((job for job in self._jobs if job.name == name), None)
        if job is None or self._stopping.is_set():
            return
        at = time.monotonic() + delay.total_seconds()
        job.wake_at = at if job.wake_at is None else min(job.wake_at, at)
        job.due_at = min(job.due_at, job.wake_at)
        self._next_due = min(self._next_due, job.due_at)
        self._start()
        # The thread then sleeps no longer than until then.
        if not self._wake_up.is_set():
            self._woken_at = time.monotonic()
        self._wake_up.set()

    @property
    def is_stopping(self) -> bool:
        """True when the process is about to end. Long jobs call this between steps; each call counts as a heartbeat."""
        for worker in (self, *self._own_threads):
            if worker._thread is threading.current_thread():
                worker._heartbeat_at = time.monotonic()
        return self._stopping.is_set()

    def hung_jobs(self, limit: timedelta) -> dict[str, timedelta]:
        """Jobs without a heartbeat for longer than ``limit``, or woken and not started for as long, with the time."""
        found = {}
        now = time.monotonic()
        for worker in (self, *self._own_threads):
            # Read once: the thread changes it concurrently.
            running, waits = worker._running, worker._wake_up.is_set() and not worker._stopping.is_set()
            name = running or min(worker._jobs, key=lambda job: job.due_at).name if worker._jobs else ""
            silent = now - (worker._heartbeat_at if running else worker._woken_at if waits else now)
            if silent > limit.total_seconds():
                found[name] = timedelta(seconds=round(silent))
        return found

    def failing_jobs(self, limit: timedelta) -> dict[str, timedelta]:
        """Jobs that have only failed for longer than ``limit``, with the time."""
        now = time.monotonic()
        since = {job.name: job.failing_since for worker in (self, *self._own_threads) for job in worker._jobs}
        ages = {name: timedelta(seconds=round(now - began)) for name, began in since.items() if began is not None}
        return {name: age for name, age in ages.items() if age > limit}

    def stop(self, timeout: float = 5.0) -> None:
        """Let running jobs finish their current step, then end the threads; waits no longer than ``timeout``
        seconds.
        """
        everyone = (self, *self._own_threads)
        for worker in everyone:
            worker._stopping.set()
            worker._wake_up.set()
        end = time.monotonic() + timeout
        for worker in everyone:
            if worker._thread is not None:
                worker._thread.join(max(0.0, end - time.monotonic()))

    def run_due(self) -> None:
        """Run every due job; a failing one is logged and retried after its interval."""
        for job in self._jobs:
            if time.monotonic() < job.due_at or self._stopping.is_set():
                continue
            # Set before the run: a wake-up during the run may be about something the run has already passed.
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
        for worker in self._own_threads:
            worker.run_due()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="identity-worker", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake_up.wait(self._seconds_until_wake())
            # Before the work: a call during it must not be lost.
            self._wake_up.clear()
            if not self._stopping.is_set():
                self.run_due()

    def _seconds_until_wake(self) -> float | None:
        """Seconds until the next job is due; None if none is scheduled."""
        alarms = [job.wake_at for job in self._jobs if job.wake_at is not None]
        return max(0.0, min(alarms) - time.monotonic()) if alarms else None
