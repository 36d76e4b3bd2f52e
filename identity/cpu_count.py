"""How many processors this process may use."""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path

_OWN_GROUPS, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def available_cpus() -> int:
    """The processors that the system assigns to this process, or fewer if a control group limits their time.

    A limit of 1.5 counts as 2.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([count, *(ceil(cgroup_limit) for cgroup_limit in _cgroup_limits())]))


def _cgroup_limits() -> Iterator[float]:
    """In processors, for each control group of this process (cgroups(7))."""
    with suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                yield from _cgroup_v2_limit(group)
            elif "cpu" in controllers.split(","):
                yield from _cgroup_v1_limit(group)


def _cgroup_v2_limit(group: str) -> Iterator[float]:
    for folder in _group_folders(_GROUPS, group):
        with suppress(OSError, ValueError):
            time, period = (folder / "cpu.max").read_text().split()
            # "max" means no limit.
            yield int(time) / int(period)


def _cgroup_v1_limit(group: str) -> Iterator[float]:
    for folder in _group_folders(_GROUPS / "cpu", group):
        with suppress(OSError):
            time, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
            if time > 0:
                yield time / period


def _group_folders(top: Path, group: str) -> Iterator[Path]:
    """The folder of the group and those above it. In a container ``top`` is its own group, whatever its name
    outside.
    """
    folder = Path(group.lstrip("/"))
    yield from (top / path for path in (folder, *folder.parents))
