"""How many times as much several workers answer as one, where the load and the database have processors of their own.

On a machine whose processors they all share nobody could tell: so each worker gets a third of one at most, by a
control group, and the rest is left to whoever asks and to the database. That takes Linux and root.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.installation import installed
from benchmarks.measuring import Amount, Sample, Served, measure
from benchmarks.service import Setup

CASES = ("opaque", "introspection", "userinfo")
CONNECTIONS = 16
SHARE = 0.3
_PERIOD = 100_000
_MOUNTED = Path("/sys/fs/cgroup")


class NoControl(Exception):
    """Processors cannot be shared out here."""


@dataclass(frozen=True)
class Scaling:
    """What one worker answers and what several do, by case."""

    setup: Setup
    titles: Mapping[str, str]
    one: Mapping[str, Sample]
    several: Mapping[str, Sample]

    @property
    def gains(self) -> Mapping[str, float]:
        """How many times as many requests were answered, by case."""
        return {name: self.several[name].rate / sample.rate for name, sample in self.one.items()}


def find(setup: Setup, pool: Executor, *, rounds: int, seconds: float) -> Scaling:
    """Measure one worker, and as many as the setup says or two. Raises LoadFailed, NotServing, NoControl."""
    one, several = replace(setup, workers=1), replace(setup, workers=max(2, setup.workers))
    with ExitStack() as stack:
        both = [stack.enter_context(installed(each, pool)) for each in (one, several)]
        for each in both:
            for worker in each.service.workers():
                stack.enter_context(_held_back(worker.pid))
        served = [Served.of(each, name) for name in CASES for each in both]
        figures, _ = measure(served, pool, Amount(5000, seconds, rounds, connections=[CONNECTIONS], openssl=False))

    def of(each: Setup) -> Mapping[str, Sample]:
        return {name: figures[each, name, CONNECTIONS] for name in CASES}

    return Scaling(several, {each.case.name: each.case.title for each in served}, of(one), of(several))


@contextmanager
def _held_back(process: int) -> Iterator[None]:
    """The process in a control group of its own, of either version, which ends with the block."""
    group, limits = _group(f"identity-benchmark-{process}")
    try:
        group.mkdir()
        for name, value in limits:
            (group / name).write_text(value, "ascii")
        (group / "cgroup.procs").write_text(str(process), "ascii")
    except OSError as problem:
        raise NoControl(f"{group}: {problem.strerror}") from None
    try:
        yield
    finally:
        _empty((group / "cgroup.procs").read_text("ascii").split(), group.parent / "cgroup.procs")
        group.rmdir()


def _group(name: str) -> tuple[Path, Iterable[tuple[str, str]]]:
    quota = str(int(SHARE * _PERIOD))
    if (_MOUNTED / "cgroup.controllers").exists():
        return _MOUNTED / name, [("cpu.max", f"{quota} {_PERIOD}")]
    return _MOUNTED / "cpu" / name, [("cpu.cfs_period_us", str(_PERIOD)), ("cpu.cfs_quota_us", quota)]


def _empty(processes: Iterable[str], into: Path) -> None:
    for process in processes:
        if os.path.exists(f"/proc/{process}"):
            into.write_text(process, "ascii")
