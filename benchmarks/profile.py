"""In which functions a request's time goes: samples of the running service's stack while it is asked.

Sampling costs each function alike, so the shares are those of CPU time; what is written in C counts for its caller.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.installation import Installation, installed
from benchmarks.measuring import CODE_FLOW, Amount, measure
from benchmarks.sampling import DUMP, RESET
from benchmarks.service import ROOT, Place, Setup
from benchmarks.targets import Verdict

_LINES = 40
_PROGRAM = "from benchmarks.sampling import start; start(); from identity.cli import main; raise SystemExit(main())"


def find(storage: str, name: str, pool: Executor, seconds: float) -> tuple[list[str], list[Verdict]]:
    """The shares of packages and functions in a case. Raises NotServing, LoadFailed."""

    def sampled(place: Place) -> Place:
        command = (sys.executable, "-c", _PROGRAM, "serve", "-c", str(place.ini))
        return replace(place, command=command, environment={"BENCHMARK_SAMPLES": str(place.log.with_name("samples"))})

    with installed(Setup(storage), pool, change=sampled) as side:
        measure([side], [[name]], pool, Amount(seconds=0.2, rounds=1))
        _signal(side, RESET)
        cpu = median(measure([side], [[name]], pool, Amount(seconds=seconds, rounds=3), warm_up=0)[0, name])
        _signal(side, DUMP)
        time.sleep(0.5)
        stacks = _read(side.place.log.with_name("samples"))
    total = sum(stacks.values())
    lines = [
        f"{name} on {storage}: {cpu * 1e6:.0f} µs of CPU a request (sampling and database included)",
        f"{total} samples{'; all parts of the flow' if name == CODE_FLOW else ''}",
    ]
    for title, names in (
        ("functions, own time", lambda stack: [stack[-1]]),
        ("functions with what they call", lambda stack: stack),
    ):
        lines += ["", title]
        lines += [
            f"  {one[-80:]:<82}{number / total:>7.1%}" for one, number in _shares(stacks, names).most_common(_LINES)
        ]
    return lines, []


def _signal(side: Installation, number: int) -> None:
    for process in side.service.workers():
        process.send_signal(number)


def _read(samples: Path) -> Counter[tuple[str, ...]]:
    stacks: Counter[tuple[str, ...]] = Counter()
    for file in samples.parent.glob(f"{samples.name}.*"):
        for line in file.read_text("utf-8").splitlines():
            stack, number = json.loads(line)
            stacks[tuple(map(_short, stack))] += number
    return stacks


def _shares(stacks: Counter[tuple[str, ...]], names: Callable[[tuple[str, ...]], Iterable[str]]) -> Counter[str]:
    """How many samples each name has that a stack counts for."""
    found: Counter[str] = Counter()
    for stack, number in stacks.items():
        found.update(dict.fromkeys(names(stack), number))
    return found


def _short(frame: str) -> str:
    """The frame with its file below the checkout, site-packages or the standard library."""
    file, _, function = frame.partition(":")
    for root in (f"{ROOT}/.venv/", f"{ROOT}/"):
        file = file.removeprefix(root)
    return f"{file.rpartition('-packages/')[2].removeprefix('/usr/lib/')}:{function}"
