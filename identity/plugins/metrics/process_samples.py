"""Metrics of all processes of a machine, shared through a folder so that each can serve their sum.

A process holds a lock on a file of its own while it lives, and writes its counters beside it at most once a second,
while they change or requests are running. Counters of dead processes stay in the sum while another one lives:
otherwise it would decrease. The first process that starts when none is alive starts at zero.
"""

import fcntl
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from identity.api.plugins import PoolUsage
from identity.plugins.metrics.counters import Samples, deserialize_samples, serialize_samples, sum_samples

log = logging.getLogger(__name__)

_MERGED_FILE = "gone.json"
_PUBLISH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ProcessSamples:
    """The counters and gauges of a process, and its pid while it lives."""

    samples: Mapping[str, Samples] = field(default_factory=dict)
    pool_usages: Sequence[PoolUsage] = ()
    process_id: int | None = None


class ProcessSampleFolder:
    """The folder, as used by one process. ``read_own`` returns its current samples."""

    def __init__(self, folder: Path, read_own: Callable[[], ProcessSamples]) -> None:
        self._folder = folder
        self._read_own = read_own
        self._name = f"{os.getpid()}-{uuid4().hex}"
        self._lock_file: int | None = None

    def join(self) -> None:
        """Register this process, and merge the counters of dead ones. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock():
            self._lock_file = os.open(self._folder / f"{self._name}.alive", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock_file, fcntl.LOCK_EX)
            self._merge_dead_processes()

    def publish(self) -> ProcessSamples:
        """Write this process's samples; returns them. Raises OSError."""
        with self._lock():
            return self._write_own(self._read_own())

    def read_all(self) -> list[ProcessSamples]:
        """The samples of all processes, including dead ones. Raises OSError.

        Only values from the folder are reported, so that no reported counter ever decreases.
        """
        with self._lock():
            process_samples = self._read_own()
            try:
                self._write_own(process_samples)
            except OSError as problem:
                _log_failure(problem)
            return [process_samples, *self._read_others()]

    def _write_own(self, share: ProcessSamples) -> ProcessSamples:
        members = {
            "counted": serialize_samples(share.samples),
            "loads": [asdict(pool_usage) for pool_usage in share.pool_usages],
        }
        self._write(f"{self._name}.json", members)
        return share

    def _read_others(self) -> list[ProcessSamples]:
        process_sampleses = []
        for path in sorted(self._folder.glob("*.json")):
            members = _read_members(path)
            if path.stem == self._name or members is None:
                continue
            lives = self._is_alive(path.stem)
            loads = [PoolUsage(**item) for item in members.get("loads", ())] if lives else []
            process = int(path.stem.partition("-")[0]) if lives else None
            process_sampleses.append(ProcessSamples(deserialize_samples(members.get("counted", {})), loads, process))
        return process_sampleses

    def leave(self) -> None:
        """Unregister: the counters stay while other processes live."""
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _merge_dead_processes(self) -> None:
        names = {path.stem for path in self._folder.glob("*.alive")} - {self._name}
        alive = {name for name in names if self._is_alive(name)}
        files = [path for path in self._folder.glob("*.json") if path.stem not in alive]
        left = [_read_members(path) for path in files] if alive else []
        counted = sum_samples([deserialize_samples(item.get("counted", {})) for item in left if item is not None])
        for path in [*files, *(self._folder / f"{name}.alive" for name in names - alive)]:
            path.unlink(missing_ok=True)
        if left:
            self._write(_MERGED_FILE, {"counted": serialize_samples(counted)})

    def _is_alive(self, name: str) -> bool:
        try:
            descriptor = os.open(self._folder / f"{name}.alive", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _write(self, name: str, members: Mapping[str, Any]) -> None:
        """Write the file atomically."""
        unfinished = self._folder / f"{self._name}.new"
        unfinished.write_text(json.dumps(members, separators=(",", ":")))
        unfinished.replace(self._folder / name)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        descriptor = os.open(self._folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class SamplePublisher:
    """A thread that writes a process's samples to the folder while they change or requests are running.

    ``busy`` returns whether a request is being handled. An idle process is not woken.
    """

    def __init__(self, shares: ProcessSampleFolder, busy: Callable[[], bool]) -> None:
        self._shares = shares
        self._busy = busy
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._publish_loop, name="identity-metrics", daemon=True)

    def start(self) -> None:
        """Start publishing. Raises OSError."""
        self._shares.join()
        self._shares.publish()
        self._thread.start()

    def notify_change(self) -> None:
        """Wake the thread after a change."""
        self._news.set()

    def stop(self) -> None:
        """Publish a last time."""
        self._stopping.set()
        self._news.set()
        self._thread.join()
        self._shares.leave()

    def _publish_loop(self) -> None:
        busy = False
        while not self._stopping.is_set():
            if not busy:
                self._news.wait()
            self._stopping.wait(_PUBLISH_SECONDS)
            self._news.clear()
            # Checked first: requests finished by then are included, later ones notify.
            busy = self._busy()
            try:
                process_samples = self._shares.publish()
                busy = busy or any(pool_usage.in_use or pool_usage.queued for pool_usage in process_samples.pool_usages)
            except OSError as problem:
                _log_failure(problem)


def _log_failure(problem: OSError) -> None:
    log.warning("what was counted cannot be told to other processes: %s", problem.strerror)


def _read_members(path: Path) -> Mapping[str, Any] | None:
    """The content of a file; None if it is gone or unreadable."""
    with suppress(OSError, ValueError):
        members = json.loads(path.read_text())
        return members if isinstance(members, dict) else None
    return None
