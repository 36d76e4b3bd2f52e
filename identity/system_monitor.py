"""What ``identity check`` says about this process, and the facts of its database, for administrators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.clock import Clock
from identity.storage.backend import DatabaseFacts
from identity.storage.errors import StorageUnavailable

SYSTEM_REPORT_JOB = "system report"
_MAX_AGE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReport:
    """``problems`` has every check by name, with what to fix, or None. ``database`` is None if it cannot be read."""

    checked_at: datetime
    problems: Mapping[str, str | None]
    database: DatabaseFacts | None


class SystemMonitor:
    """Checks take long and connect to other servers, so they run in the background, and only on request. A page shows
    the latest report."""

    def __init__(
        self,
        run_checks: Callable[[], Mapping[str, str | None]],
        read_facts: Callable[[], DatabaseFacts],
        clock: Clock,
        start: Callable[[], None],
    ) -> None:
        self._run_checks = run_checks
        self._read_facts = read_facts
        self._clock = clock
        self._start = start
        self._is_requested = False
        self._latest: SystemReport | None = None

    def latest(self) -> SystemReport | None:
        """The latest report of this process, None before the first. Starts another if it is older than 5 minutes."""
        report = self._latest
        if (report is None or self._clock() - report.checked_at > _MAX_AGE) and not self._is_requested:
            self._is_requested = True
            self._start()
        return report

    def run(self) -> None:
        """Make a report if one was requested."""
        if not self._is_requested:
            return
        try:
            database = self._read_facts()
        except StorageUnavailable:
            database = None
        try:
            self._latest = SystemReport(checked_at=self._clock(), problems=self._run_checks(), database=database)
        finally:
            self._is_requested = False
