"""Looking at the processes of a service from outside, as Linux tells of them."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from identity.server.beats import NAME, Seen
from identity.server.plan import Plan

_PROC = Path("/proc")
_PROGRAM = "identity.server.generation"
#: The fields of /proc/PID/stat behind the name: who started it, and when.
_PARENT, _STARTED = 1, 19


@dataclass(frozen=True, slots=True)
class Process:
    """A process: when it began (seconds since 1970), its memory in bytes, and how much of that no other shares."""

    pid: int
    since: float
    memory: int
    own_memory: int


@dataclass(frozen=True, slots=True)
class Generation:
    """Workers and who looks after them; ``supervisor`` is None where that is gone. ``seen`` is what they share."""

    process: Process
    supervisor: Process | None
    plan: Plan
    seen: Seen


def can_look() -> bool:
    """True where the system tells of processes as Linux does."""
    return (_PROC / "self" / "stat").exists() and hasattr(os, "memfd_create")


def generations(ini: str) -> list[Generation]:
    """Those that serve this ini file, whoever is longest there first. Raises PermissionError for another user's."""
    wanted = Path(ini.partition("#")[0]).resolve()
    plans = {pid: plan for pid, plan in _plans() if _is_at(pid, plan, wanted)}
    # Workers are forked, and so bear the name of who looks after them.
    heads = {pid: plan for pid, plan in plans.items() if _parent(pid) not in plans}
    found = []
    for pid, plan in heads.items():
        # It may end while it is looked at.
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(Generation(look_at(pid), _supervisor(_parent(pid)), plan, _seen(pid)))
    return sorted(found, key=lambda one: one.process.since)


def look_at(pid: int) -> Process:
    """What the system tells. Raises FileNotFoundError or ProcessLookupError if there is none, PermissionError."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    since = booted + int(_stat(pid)[_STARTED]) / os.sysconf("SC_CLK_TCK")
    sizes = dict(_sizes((_PROC / str(pid) / "smaps_rollup").read_text()))
    return Process(pid, since, sizes["Rss"], sizes["Private_Clean"] + sizes["Private_Dirty"])


def _sizes(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            yield words[0].rstrip(":"), int(words[1]) * 1024


def _plans() -> Iterator[tuple[int, Plan]]:
    for folder in _PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            if _PROGRAM in words[:-1]:
                with suppress(ValueError, TypeError, KeyError, AttributeError):
                    yield int(folder.name), Plan.from_json(words[-1])


def _is_at(pid: int, plan: Plan, wanted: Path) -> bool:
    name = Path(plan.ini.partition("#")[0])
    if name.is_absolute():
        return name.resolve() == wanted
    if name.name != wanted.name:
        return False
    with suppress(FileNotFoundError, ProcessLookupError):
        return (Path(os.readlink(_PROC / str(pid) / "cwd")) / name).resolve() == wanted
    return False


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold anything."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _parent(pid: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        return int(_stat(pid)[_PARENT])
    return 0


def _supervisor(pid: int) -> Process | None:
    """The process, if that is one: whose parent has died is given to another."""
    with suppress(FileNotFoundError, ProcessLookupError):
        if b"serve" in (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0"):
            return look_at(pid)
    return None


def _seen(pid: int) -> Seen:
    for file in (_PROC / str(pid) / "fd").iterdir():
        with suppress(FileNotFoundError):
            if os.readlink(file).startswith(f"/memfd:{NAME}"):
                return Seen.of(file.read_bytes())
    raise FileNotFoundError(NAME)
