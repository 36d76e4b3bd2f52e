"""Rounds: each case on each side in turn, so that whatever else the machine does meets all sides alike.

A request costs the CPU time, user and system, of all threads of all processes of its side while the load ran, divided
by the number of answers; the database's processes belong to the side, the client does not.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from benchmarks.installation import Installation
from benchmarks.load import Answers, Load, drive, keep_pace

#: What a code costs and its tokens, together.
CODE_FLOW = "code-flow"
CODE_FLOW_PARTS = ("authorize", "code")
_PATIENCE = 120.0


@dataclass(frozen=True)
class Amount:
    """How much is sent in a round of a case: at most so many requests, for at most so many seconds."""

    count: int = 3000
    seconds: float = 0.8
    rounds: int = 5
    connections: int = 16


#: Seconds of CPU a request in each round, by the place of the side among the sides, and the name of the case.
Measured = Mapping[tuple[int, str], Sequence[float]]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How many times as much a request costs as on the other side: the median of each round's ratio."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def measure(
    sides: Sequence[Installation], names: Sequence[Iterable[str]], pool: Executor, amount: Amount, *, warm_up: int = 1
) -> Measured:
    """Measure these cases of each side, after so many rounds that do not count. Raises LoadFailed."""
    wanted = [_with_parts(chosen) for chosen in names]
    order = [name for name in sides[0].cases if any(name in chosen for chosen in wanted)]
    found: dict[tuple[int, str], list[float]] = {}
    for turn in range(-warm_up, amount.rounds):
        for name in order:
            places = [place for place in range(len(sides)) if name in wanted[place]]
            for place in places if turn % 2 else reversed(places):
                cpu = _cpu(sides[place], name, pool, amount)
                if turn >= 0:
                    found.setdefault((place, name), []).append(cpu)
    for place, chosen in enumerate(wanted):
        if chosen.issuperset(CODE_FLOW_PARTS):
            parts = (found[place, part] for part in CODE_FLOW_PARTS)
            found[place, CODE_FLOW] = [sum(both) for both in zip(*parts, strict=True)]
    return found


def _with_parts(names: Iterable[str]) -> set[str]:
    return {part for name in names for part in (CODE_FLOW_PARTS if name == CODE_FLOW else (name,))}


def _cpu(side: Installation, name: str, pool: Executor, amount: Amount) -> float:
    requests = _requests(side, name, pool, amount)
    before = side.service.cpu()
    answers = _drive(side, name, requests, pool, amount)
    return (side.service.cpu() - before) / len(answers.latencies)


def _requests(side: Installation, name: str, pool: Executor, amount: Amount) -> list[bytes]:
    """The next requests. If there is nothing to make them of, the case before is run for that."""
    case = side.cases[name]
    requests = case.take(amount.count)
    if not requests and case.before is not None:
        _drive(side, case.before.name, _requests(side, case.before.name, pool, amount), pool, amount)
        requests = case.take(amount.count)
    return requests


def _drive(side: Installation, name: str, requests: Sequence[bytes], pool: Executor, amount: Amount) -> Answers:
    case = side.cases[name]
    load = Load(side.place.address, requests, case.expected, amount.connections, amount.seconds, keeps=case.keeps)
    answers = pool.submit(drive, load).result(timeout=amount.seconds + _PATIENCE)
    case.give_back(requests[len(answers.latencies) :])
    case.answered(answers.contents)
    return answers


def steady(
    side: Installation, names: Sequence[str], per_second: float, seconds: float, pool: Executor
) -> list[Answers]:
    """The answers to these cases, each asked for so often over a connection of its own."""
    number = int(per_second * seconds) + 1
    cases = [side.cases[name] for name in names]
    loads = [
        Load(side.place.address, case.take(number), case.expected, seconds=seconds, per_second=per_second)
        for case in cases
    ]
    return pool.submit(keep_pace, loads).result(timeout=seconds + _PATIENCE)
