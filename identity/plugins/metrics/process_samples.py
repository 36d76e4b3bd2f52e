"""Shares: what each process of a machine has counted, in a folder of theirs, so that each can tell the sum of all.

A process holds a lock on a file of its own for as long as it lives, and puts what it has counted beside it at most once
a second, while it has anything new or anything under way. What dead processes have counted stays in the sum as long as
another one lives: otherwise it would seem to shrink. The first process to begin where none lives begins at nought.
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

from identity.crypto.secrets import new_id
from identity.instrumentation import PoolUsage
from identity.plugins.metrics.counters import Samples, deserialize_samples, serialize_samples, sum_samples

log = logging.getLogger(__name__)

_MERGED_FILE = "gone.json"
_PUBLISH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ProcessSamples:
    """What a process says of itself: what it has counted, what it has in use, and its number while it lives."""

    samples: Mapping[str, Samples] = field(default_factory=dict)
    pool_usages: Sequence[PoolUsage] = ()
    process_id: int | None = None


class ProcessSampleFolder:
    """The folder, as one process uses it. ``own`` tells its share at any moment."""

    def __init__(self, folder: Path, read_own: Callable[[], ProcessSamples]) -> None:
        self._folder = folder
        self._read_own = read_own
        self._name = f"{os.getpid()}-{new_id()}"
        self._lock_file: int | None = None

    def join(self) -> None:
        """Take a place among the processes, and put what dead ones have left together. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock():
            self._lock_file = os.open(self._folder / f"{self._name}.alive", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock_file, fcntl.LOCK_EX)
            self._merge_dead_processes()

    def publish(self) -> ProcessSamples:
        """Let the others know; returns what they do. Raises OSError."""
        with self._lock():
            return self._write_own(self._read_own())

    def read_all(self) -> list[ProcessSamples]:
        """What this process has to say, and what others have said, those that are dead among them. Raises OSError.

        Nothing is told that does not stand in the folder: what somebody was told may never seem to shrink.
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
        """Leave: what was counted stays for as long as others live."""
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
        """A whole file or none."""
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
    """A thread that puts a process's share into the folder while there is anything new, or anything under way.

    ``busy`` tells whether there is a request at work. An idle process is not woken.
    """

    def __init__(self, shares: ProcessSampleFolder, busy: Callable[[], bool]) -> None:
        self._shares = shares
        self._busy = busy
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._publish_loop, name="identity-metrics", daemon=True)

    def start(self) -> None:
        """Tell from now on. Raises OSError."""
        self._shares.join()
        self._shares.publish()
        self._thread.start()

    def notify_change(self) -> None:
        """There is something new."""
        self._news.set()

    def stop(self) -> None:
        """Tell a last time."""
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
            # Looked at first: whoever is done by then is told of here, whoever comes has news.
            busy = self._busy()
            try:
                process_samples = self._shares.publish()
                busy = busy or any(pool_usage.in_use or pool_usage.queued for pool_usage in process_samples.pool_usages)
            except OSError as problem:
                _log_failure(problem)


def _log_failure(problem: OSError) -> None:
    log.warning("what was counted cannot be told to other processes: %s", problem.strerror)


def _read_members(path: Path) -> Mapping[str, Any] | None:
    """What a file holds; None if it is gone by now, or nothing that can be read."""
    with suppress(OSError, ValueError):
        members = json.loads(path.read_text())
        return members if isinstance(members, dict) else None
    return None
