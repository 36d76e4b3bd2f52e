"""How long background work has waited: for readiness, `identity check` and metrics."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from identity.log_format import OnceAMinute
from identity.operations import OpenServices
from identity.settings import Settings
from identity.worker import Worker

log = logging.getLogger(__name__)
log.addFilter(OnceAMinute())

#: Seconds for which a reading is reused, since probes ask for readiness often.
_FRESH = 15.0
#: The prefix of a sender's name in logs, health answers and metrics.
_OUTBOX = "outbox: "


class Backlogs:
    """The oldest item that waits for each sender and each job, and the jobs of this process that do nothing."""

    def __init__(self, settings: Settings, reading: OpenServices, worker: Callable[[], Worker]) -> None:
        self._settings = settings
        self._reading = reading
        self._worker = worker
        self._looking = threading.Lock()
        self._found: Mapping[str, timedelta] = {}
        self._read_at = float("-inf")

    def ages(self) -> Mapping[str, timedelta]:
        """The age of each, a quarter of a minute old at most.

        While another thread reads, or the storage cannot be read, it is the last reading.
        """
        if time.monotonic() - self._read_at >= _FRESH and self._looking.acquire(blocking=False):
            try:
                with self._reading() as services:
                    self._found = services.measuring.waiting()
            except Exception as problem:
                # The storage check reports the cause. Failing here would take the node out for another's fault.
                log.warning("what waits for background work cannot be read: %s", type(problem).__name__)
            finally:
                self._read_at = time.monotonic()
                self._looking.release()
        return self._found

    def late(self) -> dict[str, timedelta]:
        """Those that have waited for too long, and for how long."""
        settings = self._settings
        return {
            name: age
            for name, age in self.ages().items()
            if age >= (settings.outbox_alarm_age if name.startswith(_OUTBOX) else settings.job_alarm_age)
        }

    def degraded(self) -> dict[str, int]:
        """What is not as it should be, though this node answers requests as well as any: name and age in seconds."""
        worker = self._worker()
        found = {
            **self.late(),
            **{f"failing: {name}": age for name, age in worker.failing(self._settings.job_alarm_age).items()},
            **{f"hung: {name}": age for name, age in worker.hung(self._settings.hung_job_age).items()},
        }
        for name, age in found.items():
            log.warning("background work is late: %s, since %s", name, age)
        return {name: int(age.total_seconds()) for name, age in found.items()}
