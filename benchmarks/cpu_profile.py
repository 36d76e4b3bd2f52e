"""CPU profile of a request: samples of the running service's stack under load.

Sampling slows every function equally, so shares are those of CPU time; time in C code counts for its caller.
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

from benchmarks.installations import Installation, install_service
from benchmarks.measurement import CODE_FLOW, MeasurementPlan, measure_cases
from benchmarks.service_process import ROOT, Deployment, ServiceConfiguration
from benchmarks.stack_sampler import DUMP, RESET
from benchmarks.targets import TargetResult

_LINES = 40
_PROGRAM = (
    "from benchmarks.stack_sampler import start_sampling; start_sampling(); "
    "from identity.cli import main; raise SystemExit(main())"
)


def profile_case(storage: str, name: str, pool: Executor, seconds: float) -> tuple[list[str], list[TargetResult]]:
    """Shares of packages and functions in a case. Raises ServiceStartError, UnexpectedResponse."""

    def sampled(deployment: Deployment) -> Deployment:
        command = (sys.executable, "-c", _PROGRAM, "serve", "-c", str(deployment.ini))
        return replace(
            deployment, command=command, environment={"BENCHMARK_SAMPLES": str(deployment.log.with_name("samples"))}
        )

    with install_service(ServiceConfiguration(storage), pool, change=sampled) as side:
        measure_cases([side], [[name]], pool, MeasurementPlan(seconds=0.2, rounds=1))
        _send_signal(side, RESET)
        cpu = median(
            measure_cases([side], [[name]], pool, MeasurementPlan(seconds=seconds, rounds=3), warm_up=0)[0, name]
        )
        _send_signal(side, DUMP)
        time.sleep(0.5)
        stacks = _read_samples(side.deployment.log.with_name("samples"))
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
            f"  {item[-80:]:<82}{number / total:>7.1%}"
            for item, number in _count_samples(stacks, names).most_common(_LINES)
        ]
    return lines, []


def _send_signal(side: Installation, number: int) -> None:
    for process in side.service.list_workers():
        process.send_signal(number)


def _read_samples(samples: Path) -> Counter[tuple[str, ...]]:
    stacks: Counter[tuple[str, ...]] = Counter()
    for file in samples.parent.glob(f"{samples.name}.*"):
        for line in file.read_text("utf-8").splitlines():
            stack, number = json.loads(line)
            stacks[tuple(map(_short_frame, stack))] += number
    return stacks


def _count_samples(stacks: Counter[tuple[str, ...]], names: Callable[[tuple[str, ...]], Iterable[str]]) -> Counter[str]:
    """Number of samples per name; ``names`` returns the names that a stack counts for."""
    found: Counter[str] = Counter()
    for stack, number in stacks.items():
        found.update(dict.fromkeys(names(stack), number))
    return found


def _short_frame(frame: str) -> str:
    """The frame with its file relative to the checkout, site-packages or the standard library."""
    file, _, function = frame.partition(":")
    for root in (f"{ROOT}/.venv/", f"{ROOT}/"):
        file = file.removeprefix(root)
    return f"{file.rpartition('-packages/')[2].removeprefix('/usr/lib/')}:{function}"
