"""Metrics of all processes of a machine, in the folder format of prometheus_client's multiprocess mode.

Each process adds to its own files, and each serves the sum. A process takes the lowest number that no running
process has and continues its files, so they stay few, and no counter decreases when a process ends. The first
process that starts when none is running starts at zero.

The library's ``Counter`` and ``Histogram`` write at each count, which takes 0.8 and 1.5 µs of a request's path
against 0.3 and 0.4 µs in memory, and its gauges cannot ask for a value; so we count in memory and write once a
second.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.utils import floatToGoString

from identity.api.plugins import PoolUsage
from identity.plugins.metrics.counters import ProcessCounters, Samples
from identity.plugins.metrics.families import POOL_IN_USE, POOL_QUEUED, POOL_SIZE, WORKERS_REPLACED, MetricFamily

_PUBLISH_SECONDS = 1.0
#: Room for all routes. It is taken at the start: a mapped file that found the disk full later would end the process.
_FILE_BYTES = 1 << 20
#: Gauges that end with their process and are added up, and values that all workers of a generation share.
_LIVE_SUM, _MAXIMUM = "gauge_livesum", "gauge_max"


class MetricFiles:
    """The folder, as used by one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writing = threading.Lock()
        self._files: dict[str, MmapedDict] = {}

    def open(self) -> None:
        """Take a number, after clearing the folder if no other process lives. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock_folder():
            if not self._living_processes():
                for path in self._folder.glob("*.db"):
                    path.unlink()
            number, self._process_lock = next(
                (number, lock) for number in count() if (lock := _try_lock(self._folder / f"{number}.pid")) is not None
            )
            (self._folder / f"{number}.pid").write_text(str(os.getpid()))
            for kind in ("counter", "histogram", _LIVE_SUM, _MAXIMUM):
                path = self._folder / f"{kind}_{number}.db"
                if not path.exists():
                    path.write_bytes(bytes(_FILE_BYTES))
                self._files[kind] = MmapedDict(str(path))

    def close(self) -> None:
        """Release the number; the counts stay while other processes run."""
        with self._writing:
            for file in self._files.values():
                file.close()
            if self._files:
                os.close(self._process_lock)
            self._files.clear()

    def add(self, counted: Mapping[MetricFamily, Samples]) -> None:
        """Add counts to those of the file."""
        with self._writing:
            for family, samples in counted.items():
                file = self._files["histogram" if family.buckets else "counter"]
                for labels, cell in samples.items():
                    for key, value in zip(_sample_keys(family, labels), cell, strict=True):
                        file.write_value(key, file.read_value(key)[0] + value, 0)

    def set_gauges(self, pool_usages: Sequence[PoolUsage], replacements: tuple[str, int] | None) -> None:
        with self._writing:
            for usage in pool_usages:
                values = ((POOL_IN_USE, usage.in_use), (POOL_SIZE, usage.size), (POOL_QUEUED, usage.queued))
                for family, value in values:
                    key = mmap_key(family.name, family.name, list(family.labels), [usage.name], "")
                    self._files[_LIVE_SUM].write_value(key, value, 0)
            if replacements is not None:
                generation, times = replacements
                key = mmap_key(WORKERS_REPLACED.name, WORKERS_REPLACED.name, ["generation"], [generation], "")
                self._files[_MAXIMUM].write_value(key, times, 0)

    def read(self) -> tuple[dict[str, Metric], list[int]]:
        """The metrics of all processes by name, and the ids of those that live. Raises OSError."""
        with self._lock_folder():
            living = self._living_processes()
        return {metric.name: metric for metric in MultiProcessCollector(None, str(self._folder)).collect()}, living

    def _living_processes(self) -> list[int]:
        """Removes the gauges of the others."""
        living = []
        for path in self._folder.glob("*.pid"):
            lock = _try_lock(path)
            if lock is None:
                living.append(int(path.read_text()))
            else:
                mark_process_dead(path.stem, str(self._folder))
                os.close(lock)
        return living

    @contextmanager
    def _lock_folder(self) -> Iterator[None]:
        descriptor = os.open(self._folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _try_lock(path: Path) -> int | None:
    """The open file, which only a living process keeps locked; None if one does."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@cache
def _sample_keys(family: MetricFamily, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Of each value in a cell of ``Samples``."""
    names, values = list(family.labels), list(labels)
    if not family.buckets:
        return (mmap_key(family.name, f"{family.name}_total", names, values, ""),)
    bounds = [floatToGoString(bound) for bound in (*family.buckets, float("inf"))]
    return (
        mmap_key(family.name, f"{family.name}_sum", names, values, ""),
        *(mmap_key(family.name, f"{family.name}_bucket", [*names, "le"], [*values, bound], "") for bound in bounds),
    )


class MetricPublisher:
    """A thread that writes the counts while requests or other work are running. An idle process is not woken."""

    def __init__(
        self,
        files: MetricFiles,
        counters: ProcessCounters,
        pool_usages: Callable[[], Sequence[PoolUsage]],
        replacements: Callable[[], tuple[str, int] | None],
    ) -> None:
        self._files, self._counters = files, counters
        self._pool_usages, self._replacements = pool_usages, replacements
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._publish_loop, name="identity-metrics", daemon=True)

    def start(self) -> None:
        """Raises OSError."""
        self._files.open()
        # A forked process would otherwise count these again.
        self._counters.reset()
        self.publish()
        self._counters.on_change = self._changed.set
        self._thread.start()

    def publish(self) -> bool:
        """Write the counts since the last time; returns whether a pool is in use."""
        usages = self._pool_usages()
        self._files.add(self._counters.take())
        self._files.set_gauges(usages, self._replacements())
        return any(usage.in_use or usage.queued for usage in usages)

    def stop(self) -> None:
        """Publish a last time."""
        self._counters.on_change = lambda: None
        self._stopping.set()
        self._changed.set()
        self._thread.join()
        self._files.close()

    def _publish_loop(self) -> None:
        busy = False
        while not self._stopping.is_set():
            if not busy:
                self._changed.wait()
            self._stopping.wait(_PUBLISH_SECONDS)
            self._changed.clear()
            # Checked first: requests finished by then are included, later ones notify.
            busy = self._counters.is_busy()
            busy = self.publish() or busy
