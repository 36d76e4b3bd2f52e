"""How long background work has been waiting and signers have been failing, for readiness, ``identity check`` and
metrics.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from identity.background_worker import BackgroundWorker
from identity.extension_points import ServicesFactory
from identity.log_formatters import RepeatedMessageFilter
from identity.settings import Settings

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

#: Readings are cached for this long, because readiness probes are frequent.
_CACHE_SECONDS = 15.0
#: The prefix of a sender's name in logs, health answers and metrics.
_OUTBOX = "outbox: "


class BackgroundWorkMonitor:
    """The oldest pending item of each sender and job, and the hung jobs and failing signers of this process."""

    def __init__(
        self,
        settings: Settings,
        reading: ServicesFactory,
        worker: Callable[[], BackgroundWorker],
        failing_signers: Callable[[], Mapping[str, timedelta]] = dict,
    ) -> None:
        self._settings = settings
        self._reading = reading
        self._worker = worker
        self._failing_signers = failing_signers
        self._refresh_lock = threading.Lock()
        self._cached_times: Mapping[str, timedelta] = {}
        self._read_at = float("-inf")

    def oldest_pending(self) -> Mapping[str, timedelta]:
        """The age of the oldest pending item by name, cached for 15 seconds.

        Returns the previous reading while another thread reads, or if the storage cannot be read.
        """
        if time.monotonic() - self._read_at >= _CACHE_SECONDS and self._refresh_lock.acquire(blocking=False):
            try:
                with self._reading() as services:
                    self._cached_times = services.statistics.backlog_ages()
            except Exception as problem:
                # The storage check reports the cause. Failing here would take this node out because of a shared fault.
                log.warning("what waits for background work cannot be read: %s", type(problem).__name__)
            finally:
                self._read_at = time.monotonic()
                self._refresh_lock.release()
        return self._cached_times

    def overdue(self) -> dict[str, timedelta]:
        """Those that have waited for too long, with their age."""
        settings = self._settings
        return {
            name: age
            for name, age in self.oldest_pending().items()
            if age >= (settings.outbox_alarm_age if name.startswith(_OUTBOX) else settings.job_alarm_age)
        }

    def degradations(self) -> dict[str, int]:
        """Degradations that do not keep this node from serving: name and age in seconds."""
        worker = self._worker()
        found = {
            **self.overdue(),
            **{f"failing: {name}": age for name, age in worker.failing_jobs(self._settings.job_alarm_age).items()},
            **{f"hung: {name}": age for name, age in worker.hung_jobs(self._settings.hung_job_age).items()},
        }
        for name, age in found.items():
            log.warning("background work is late: %s, since %s", name, age)
        found |= {f"signer: {name}": age for name, age in self._failing_signers().items()}
        return {name: int(age.total_seconds()) for name, age in found.items()}
