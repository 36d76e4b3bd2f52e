"""Rounds: each case on each side in turn, so that whatever else the machine does meets all sides alike.

A request costs the CPU time, user and system, of all threads of all processes of its side while the load ran, divided
by the number of answers; the database's processes belong to the side, the client does not.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from benchmarks.installations import Installation
from benchmarks.load_generator import LoadResult, LoadSpec, run_load, run_paced_load

#: What a code costs and its tokens, together.
CODE_FLOW = "code-flow"
CODE_FLOW_PARTS = ("authorize", "code")
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class MeasurementPlan:
    """How much is sent in a round of a case: at most so many requests, for at most so many seconds."""

    count: int = 3000
    seconds: float = 0.8
    rounds: int = 5
    connections: int = 16


#: Seconds of CPU a request in each round, by the place of the side among the sides, and the name of the case.
MeasuredRatios = Mapping[tuple[int, str], Sequence[float]]


def median_ratio(ours: Sequence[float], reference: Sequence[float]) -> float:
    """How many times as much a request costs as on the other side: the median of each round's ratio."""
    return statistics.median(item / other for item, other in zip(ours, reference, strict=True))


def measure_cases(
    sides: Sequence[Installation],
    names: Sequence[Iterable[str]],
    pool: Executor,
    amount: MeasurementPlan,
    *,
    warm_up: int = 1,
) -> MeasuredRatios:
    """Measure these cases of each side, after so many rounds that do not count. Raises UnexpectedResponse."""
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
    """The next requests. If there is nothing to make them of, the case before is run for that."""
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
    """The answers to these cases, each asked for so often over a connection of its own."""
    number = int(per_second * seconds) + 1
    cases = [side.cases[name] for name in names]
    loads = [
        LoadSpec(
            side.deployment.address, case.next_requests(number), case.expected, seconds=seconds, per_second=per_second
        )
        for case in cases
    ]
    return pool.submit(run_paced_load, loads).result(timeout=seconds + _TIMEOUT_SECONDS)
