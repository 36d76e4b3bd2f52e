"""Measurement rounds: each case on each side in turn, so that other load affects all sides alike.

The cost of a request is the CPU time, user and system, of all threads of all processes of its side during the load,
divided by the number of responses; the database's processes belong to the side, the client does not.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from benchmarks.installations import Installation
from benchmarks.load_generator import LoadResult, LoadSpec, run_load, run_paced_load

#: The cost of a code and its tokens together.
CODE_FLOW = "code-flow"
CODE_FLOW_PARTS = ("authorize", "code")
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class MeasurementPlan:
    """Limits of a round of a case: number of requests, and seconds."""

    count: int = 3000
    seconds: float = 0.8
    rounds: int = 5
    connections: int = 16


#: CPU seconds per request in each round, by index of the side and name of the case.
MeasuredRatios = Mapping[tuple[int, str], Sequence[float]]


def median_ratio(ours: Sequence[float], reference: Sequence[float]) -> float:
    """Cost relative to the other side: the median of the rounds' ratios."""
    return statistics.median(item / other for item, other in zip(ours, reference, strict=True))


def measure_cases(
    sides: Sequence[Installation],
    names: Sequence[Iterable[str]],
    pool: Executor,
    amount: MeasurementPlan,
    *,
    warm_up: int = 1,
) -> MeasuredRatios:
    """Measure these cases of each side, after this many warm-up rounds. Raises UnexpectedResponse."""
    selected = [_expand_cases(chosen) for chosen in names]
    order = [name for name in sides[0].cases if any(name in chosen for chosen in selected)]
    found: dict[tuple[int, str], list[float]] = {}
    for turn in range(-warm_up, amount.rounds):
        for name in order:
            indexes = [index for index in range(len(sides)) if name in selected[index]]
            for index in indexes if turn % 2 else reversed(indexes):
                cpu = _measure_cpu(sides[index], name, pool, amount)
                if turn >= 0:
                    found.setdefault((index, name), []).append(cpu)
    for index, chosen in enumerate(selected):
        if chosen.issuperset(CODE_FLOW_PARTS):
            parts = (found[index, part] for part in CODE_FLOW_PARTS)
            found[index, CODE_FLOW] = [sum(both) for both in zip(*parts, strict=True)]
    return found


def _expand_cases(names: Iterable[str]) -> set[str]:
    return {part for name in names for part in (CODE_FLOW_PARTS if name == CODE_FLOW else (name,))}


def _measure_cpu(side: Installation, name: str, pool: Executor, amount: MeasurementPlan) -> float:
    requests = _next_requests(side, name, pool, amount)
    before = side.service.cpu_seconds()
    answers = _run_case(side, name, requests, pool, amount)
    return (side.service.cpu_seconds() - before) / len(answers.latencies)


def _next_requests(side: Installation, name: str, pool: Executor, amount: MeasurementPlan) -> list[bytes]:
    """The next requests. If their source responses are used up, its case is run first."""
    case = side.cases[name]
    requests = case.next_requests(amount.count)
    if not requests and case.source_case is not None:
        _run_case(side, case.source_case.name, _next_requests(side, case.source_case.name, pool, amount), pool, amount)
        requests = case.next_requests(amount.count)
    return requests


def _run_case(
    side: Installation, name: str, requests: Sequence[bytes], pool: Executor, amount: MeasurementPlan
) -> LoadResult:
    case = side.cases[name]
    load = LoadSpec(
        side.deployment.address,
        requests,
        case.expected,
        amount.connections,
        amount.seconds,
        stores_responses=case.stores_responses,
    )
    answers = pool.submit(run_load, load).result(timeout=amount.seconds + _TIMEOUT_SECONDS)
    case.return_requests(requests[len(answers.latencies) :])
    case.feed_responses(answers.bodies)
    return answers


def run_steady_load(
    side: Installation, names: Sequence[str], per_second: float, seconds: float, pool: Executor
) -> list[LoadResult]:
    """Results of these cases, each at this rate over its own connection."""
    number = int(per_second * seconds) + 1
    cases = [side.cases[name] for name in names]
    loads = [
        LoadSpec(
            side.deployment.address, case.next_requests(number), case.expected, seconds=seconds, per_second=per_second
        )
        for case in cases
    ]
    return pool.submit(run_paced_load, loads).result(timeout=seconds + _TIMEOUT_SECONDS)
