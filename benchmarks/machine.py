"""The machine as a whole: how long its processors were busy, and how long its disk takes."""

import os
import statistics
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]


def processors() -> int:
    """How many there are."""
    return os.cpu_count() or 1


def busy() -> float:
    """Seconds that all processors together have worked so far, for whomever."""
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))


def sync(folder: Path) -> float:
    """How long a commit has to wait at least: the median time of writing and syncing a page in this folder."""
    path = folder / "disk"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    spans = []
    try:
        for _ in range(50):
            started = time.perf_counter()
            os.write(descriptor, b"\0" * 4096)
            os.fsync(descriptor)
            spans.append(time.perf_counter() - started)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(spans)
