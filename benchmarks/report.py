"""The figures as a table for people and as JSON for programs."""

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.cases import Case, Sum
from benchmarks.flood import Flood
from benchmarks.measuring import Figures, Sample, Units
from benchmarks.targets import Figure, Reading, Target, target_of

MEMORY_TARGET = 105 * 2**20
START_TARGET = 1.0
MEMORY_AT_START_TARGET = 105 * 2**20
#: How much slower others may be answered while logins are tried in great number (security 10.1).
FLOOD_TARGET = 2.0

_EXPLANATION = """\
ratio: CPU time of the service (user and system, all threads of all its processes) per answer, in signatures;
(crypt.): the same in signatures by cryptography. Medians of {rounds} rounds, the units measured before and after each;
best: the cheapest round, closest to a machine with nothing else to do; user: the ratio without the system's own work.
The load generator runs in its own process and is not counted; busy says how much of one CPU it took. Targets hold at
{judged} connections. {storage}"""
_STORAGE = {
    "sqlite": "SQLite works inside the service and is counted. Waiting for the disk costs no CPU, but time.",
    "postgresql": "PostgreSQL's own processes are counted too.",
}


@dataclass(frozen=True)
class Conditions:
    """Under which circumstances it was measured."""

    server: str
    threads: int
    storage: str
    rounds: int
    connections: Sequence[int]


@dataclass(frozen=True)
class Result:
    """Everything that one run found; times in seconds, memory in bytes."""

    conditions: Conditions
    cases: Sequence[Case | Sum]
    figures: Figures
    units: Units
    starts: Sequence[float]
    memory_at_start: int
    memory: int
    disk: float

    @property
    def start(self) -> float:
        """CPU time from the command to the first answer."""
        return statistics.median(self.starts)


def table(result: Result) -> str:
    """The result for the terminal."""
    conditions = result.conditions
    lines = [
        "",
        f"{conditions.server}, threads={conditions.threads}, {conditions.storage}; Python {platform.python_version()},"
        f" {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}",
        f"unit: one RSA-2048 signature by {result.units.name}; openssl speed {_spread(result.units.openssl)},"
        f" cryptography {_spread(result.units.cryptography)}",
        f"disk: 4 KiB written and synced in {result.disk * 1e6:.0f} µs",
    ]
    for number in conditions.connections:
        lines += ["", *_rows(result, number)]
    memory, at_start = (f"{one / 2**20:.0f} MB" for one in (result.memory, result.memory_at_start))
    start = f"{result.start:.2f} s ({', '.join(f'{one:.2f}' for one in result.starts)})"
    lines += [
        "",
        f"memory (RSS)             ≤ {MEMORY_TARGET // 2**20} MB  {_verdict(result.memory, MEMORY_TARGET):<7}{memory}",
        f"right after the start    ≤ {MEMORY_AT_START_TARGET // 2**20} MB  "
        f"{_verdict(result.memory_at_start, MEMORY_AT_START_TARGET):<7}{at_start}",
        f"CPU until first answer   ≤ {START_TARGET} s   {_verdict(result.start, START_TARGET):<7}{start}",
        "",
        _EXPLANATION.format(
            rounds=conditions.rounds, judged=conditions.connections[0], storage=_STORAGE[conditions.storage]
        ),
    ]
    return "\n".join(lines)


def as_json(result: Result) -> dict[str, Any]:
    """The result for programs."""
    rows = []
    for case in result.cases:
        for number in result.conditions.connections:
            sample = result.figures[case.name, number]
            target = _target(result, case.name)
            limit = None if target is None else target.limit
            row = {"case": case.name, "connections": number, "target": limit, "ratio": sample.ratio}
            judged = number == result.conditions.connections[0]
            met = None if target is None or not judged else sample.ratio <= target.limit
            rows.append({**row, "met": met, **asdict(sample)})
    return {
        "conditions": {
            **asdict(result.conditions),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "unit": result.units.name,
        },
        "units": asdict(result.units),
        "cases": rows,
        "memory": {"bytes": result.memory, "at_start": result.memory_at_start, "target": MEMORY_TARGET},
        "start": {"seconds": result.start, "all": list(result.starts), "target": START_TARGET},
        "disk": result.disk,
    }


def flood_table(flood: Flood) -> str:
    """How others were answered during a flood of logins, for the terminal."""
    said = ", ".join(f"{count} with {status}" for status, count in sorted(flood.answers.items()))
    lines = [
        "",
        f"flood of logins: {flood.connections} connections, {flood.rate:.0f} wrong passwords a second; {said}"
        f" (422 refused, 503 shed); load before {flood.load:.1f}",
        f"{f'{flood.per_second} requests/s each':<24}{'target':>7}{'ratio':>7} {'':<7}"
        f"{'p95 ms: idle':>14}{'flood':>8}{'p50 ms: idle':>15}{'flood':>8}",
    ]
    for name, title in flood.titles.items():
        idle, busy = flood.idle[name], flood.busy[name]
        ratio = busy.p95 / idle.p95
        lines.append(
            f"{title:<24}{f'≤ {FLOOD_TARGET}':>7}{ratio:>7.2f} {_verdict(ratio, FLOOD_TARGET):<7}"
            f"{idle.p95 * 1e3:>14.2f}{busy.p95 * 1e3:>8.2f}{idle.p50 * 1e3:>15.2f}{busy.p50 * 1e3:>8.2f}"
        )
    return "\n".join(lines)


def flood_as_json(flood: Flood) -> dict[str, Any]:
    """The same for programs."""
    ratios = {name: flood.busy[name].p95 / flood.idle[name].p95 for name in flood.titles}
    return {"flood": {**asdict(flood), "ratios": ratios, "target": FLOOD_TARGET}}


def _rows(result: Result, connections: int) -> list[str]:
    judged = connections == result.conditions.connections[0]
    title = f"{connections} connection{'s' if connections > 1 else ''}"
    rows = [
        f"{title:<24}{'target':>7}{'ratio':>7} {'':<7}{'best':>6}{'user':>6}{'(crypt.)':>9}"
        f"{'CPU µs':>8}{'req/s':>8}{'p50 ms':>8}{'p99 ms':>8}{'busy':>6}"
    ]
    for case in result.cases:
        sample = result.figures[case.name, connections]
        wanted = _target(result, case.name)
        target, verdict = "", ""
        if judged and wanted is not None:
            target, verdict = wanted.shown, _verdict(sample.ratio, wanted.limit)
        rows.append(
            f"{case.title:<24}{target:>7}{sample.ratio:>7.2f} {verdict:<7}{sample.best or 0:>6.2f}"
            f"{sample.user_ratio:>6.2f}{sample.cryptography_ratio:>9.2f}{sample.cpu * 1e6:>8.0f}{sample.rate:>8.0f}"
            f"{_latencies(sample)}"
        )
    return rows


def _target(result: Result, case: str) -> Target | None:
    conditions = result.conditions
    return target_of(Reading(Figure.COST, conditions.server, conditions.storage, case, 0.0))


def _verdict(value: float, target: float) -> str:
    return "met" if value <= target else "missed"


def _latencies(sample: Sample) -> str:
    """What is known of single requests: nothing for a sum."""
    if sample.p50 is None or sample.p99 is None or sample.generator_share is None:
        return ""
    return f"{sample.p50 * 1e3:>8.2f}{sample.p99 * 1e3:>8.2f}{sample.generator_share:>6.0%}"


def _spread(seconds: Sequence[float | None]) -> str:
    known = sorted(one * 1e6 for one in seconds if one is not None)
    if not known:
        return "not there"
    return f"{statistics.median(known):.0f} µs ({known[0]:.0f} to {known[-1]:.0f})"
