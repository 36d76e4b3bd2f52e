"""Rounds: every case in turn, the unit between them, then the median over the rounds.

What represents the cost of a request is the CPU time, user and system, of all threads of all processes of the service
while the load ran, divided by the number of answers. It is set against the unit measured right before and after the
same round, because other programs on the machine slow down both alike. The load generator's CPU time is not counted.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from benchmarks import commit, machine, unit
from benchmarks.cases import Case, Sum
from benchmarks.commit import Commit
from benchmarks.installation import Installation
from benchmarks.load import Answers, Load, drive
from benchmarks.service import Service, Setup

_PATIENCE = 120.0


@dataclass(frozen=True)
class Sample:
    """One case in one round, or the median of several; times in seconds.

    ``*_ratio`` count in signatures of openssl and of cryptography. ``best`` is the ratio of the cheapest round: other
    programs only ever add to the cost, by emptying the caches, which a signature hardly notices and Python does.
    ``tail`` is the 99th percentile as a multiple of the median. ``others`` is the share of the machine's processors
    that neither the service nor the load generator took. A sum of several cases has no latencies.
    """

    cpu: float
    user: float
    rate: float
    p50: float | None
    p99: float | None
    tail: float | None
    generator_share: float | None
    openssl_ratio: float | None
    cryptography_ratio: float
    others: float
    best: float | None = None

    @property
    def ratio(self) -> float:
        """The cost in the unit of this run."""
        return self.cryptography_ratio if self.openssl_ratio is None else self.openssl_ratio

    @property
    def user_ratio(self) -> float:
        """The cost without what the system itself spent on sockets and files."""
        return self.ratio * self.user / self.cpu if self.cpu else 0.0

    @classmethod
    def median(cls, samples: Sequence["Sample"]) -> "Sample":
        """The median of each figure, and the best ratio."""
        middle: dict[str, Any] = {}
        for one in fields(cls):
            known = [value for sample in samples if (value := getattr(sample, one.name)) is not None]
            middle[one.name] = statistics.median(known) if known else None
        return cls(**{**middle, "best": min(sample.ratio for sample in samples)})

    @classmethod
    def sum(cls, samples: Sequence["Sample"]) -> "Sample":
        """What one of each costs together; ``rate`` is how often all can be done in a second, one after the other."""
        by_openssl = [sample.openssl_ratio for sample in samples if sample.openssl_ratio is not None]
        return cls(
            cpu=sum(sample.cpu for sample in samples),
            user=sum(sample.user for sample in samples),
            rate=1 / sum(1 / sample.rate for sample in samples),
            p50=None,
            p99=None,
            tail=None,
            generator_share=None,
            openssl_ratio=sum(by_openssl) if len(by_openssl) == len(samples) else None,
            cryptography_ratio=sum(sample.cryptography_ratio for sample in samples),
            others=statistics.mean(sample.others for sample in samples),
        )


@dataclass(frozen=True)
class Served:
    """A case and the service that is asked."""

    setup: Setup
    case: Case
    service: Service
    address: tuple[str, int]

    @classmethod
    def of(cls, installation: Installation, name: str) -> "Served":
        """The case of this name."""
        bare = installation.bare
        if name == bare.case.name:
            return cls(installation.setup, bare.case, bare.service, bare.place.address)
        return cls(installation.setup, installation.cases[name], installation.service, installation.place.address)


@dataclass(frozen=True)
class Amount:
    """How much is sent: at most so many requests, for at most so many seconds, in so many rounds.

    The first of ``connections`` is what is judged; with another number half as much is sent. ``openssl`` says whether
    its speed is measured between rounds; that takes two seconds each time.
    """

    count: int
    seconds: float
    rounds: int
    connections: Sequence[int]
    openssl: bool = True

    @property
    def warm_up(self) -> "Amount":
        """What is sent before anything counts."""
        return replace(self, count=min(200, self.count))

    def with_connections(self, number: int) -> "Amount":
        """What is sent over so many connections."""
        share = 1 if number == self.connections[0] else 2
        return replace(self, count=-(-self.count // share), seconds=self.seconds / share)


@dataclass(frozen=True)
class Units:
    """One signature in seconds of CPU, in the order of measuring, and what commits cost meanwhile."""

    openssl: list[float | None]
    cryptography: list[float]
    commits: list[Commit] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Which one is the unit of this run."""
        return "cryptography" if None in self.openssl else "openssl speed"

    @property
    def signature(self) -> float:
        """The median of one signature."""
        known = [span for span in self.openssl if span is not None]
        return statistics.median(known if self.name != "cryptography" else self.cryptography)

    def commit(self, rows: int) -> Commit:
        """The median of a commit for so many rows."""
        return Commit.median([one for one in self.commits if one.rows == rows])


#: By setup, the name of the case or sum, and the number of connections.
Figures = Mapping[tuple[Setup, str, int], Sample]

#: How many rows share a commit of those that are measured for comparison.
ROWS_PER_COMMIT = (1, 8)


def measure(
    served: Sequence[Served], pool: Executor, amount: Amount, sums: Sequence[Sum] = (), disk: Path | None = None
) -> tuple[Figures, Units]:
    """The median over all rounds for each setup, case or sum, and number of connections, and the units.

    Commits are measured in the folder ``disk``. Raises LoadFailed.
    """
    connections = amount.connections
    for one in served:
        _drive(one, _requests(one, pool, amount.warm_up, max(connections)), pool, amount.warm_up, max(connections))
    units = Units([_by_openssl(amount)], [unit.by_cryptography()])
    samples: dict[tuple[Setup, str, int], list[Sample]] = {}
    for _ in range(amount.rounds):
        if disk is not None:
            units.commits.extend(commit.of(rows, disk) for rows in ROWS_PER_COMMIT)
        taken = {
            (one.setup, one.case.name, number): _sample(one, pool, amount.with_connections(number), number, units)
            for number in connections
            for one in served
        }
        units.openssl.append(_by_openssl(amount))
        before, after = units.openssl[-2:]
        signature = None if before is None or after is None else (before + after) / 2
        for key, sample in taken.items():
            ratio = None if signature is None else sample.cpu / signature
            samples.setdefault(key, []).append(replace(sample, openssl_ratio=ratio))
        for setup, total, number in _totals(served, sums, connections):
            parts = [samples[setup, part, number][-1] for part in total.parts]
            samples.setdefault((setup, total.name, number), []).append(Sample.sum(parts))
    return {key: Sample.median(several) for key, several in samples.items()}, units


def _totals(
    served: Sequence[Served], sums: Sequence[Sum], connections: Sequence[int]
) -> Iterator[tuple[Setup, Sum, int]]:
    """The sums of which all parts are measured."""
    for setup in {one.setup for one in served}:
        names = {one.case.name for one in served if one.setup == setup}
        for total in sums:
            if names.issuperset(total.parts):
                yield from ((setup, total, number) for number in connections)


def _sample(one: Served, pool: Executor, amount: Amount, connections: int, units: Units) -> Sample:
    """One case in one round, not yet set against openssl's signature, which is measured after the round."""
    requests = _requests(one, pool, amount, connections)
    before, busy_before = one.service.cpu(), machine.busy()
    answers = _drive(one, requests, pool, amount, connections)
    spent, busy = one.service.cpu().since(before), machine.busy() - busy_before
    units.cryptography.append(unit.by_cryptography())
    signature = (units.cryptography[-2] + units.cryptography[-1]) / 2
    number = len(answers.latencies)
    latencies = sorted(answers.latencies)
    cpu = spent.exact / number
    p50, p99 = latencies[number // 2], latencies[min(number - 1, number * 99 // 100)]
    ticks = spent.user + spent.system
    return Sample(
        cpu=cpu,
        # The split comes in hundredths of a second, so it only divides what is known exactly.
        user=cpu * spent.user / ticks if ticks else cpu,
        rate=number / answers.elapsed,
        p50=p50,
        p99=p99,
        tail=p99 / p50,
        generator_share=answers.cpu / answers.elapsed,
        openssl_ratio=None,
        cryptography_ratio=cpu / signature,
        others=max(0.0, busy - spent.exact - answers.cpu) / answers.elapsed / machine.processors(),
    )


def _by_openssl(amount: Amount) -> float | None:
    return unit.by_openssl() if amount.openssl else None


def _requests(one: Served, pool: Executor, amount: Amount, connections: int) -> list[bytes]:
    """The case's next requests. If nothing is left to make them of, the case before is run for that."""
    requests = one.case.take(amount.count)
    if not requests and one.case.before is not None:
        before = replace(one, case=one.case.before)
        _drive(before, _requests(before, pool, amount, connections), pool, amount, connections)
        requests = one.case.take(amount.count)
    return requests


def _drive(one: Served, requests: Sequence[bytes], pool: Executor, amount: Amount, connections: int) -> Answers:
    case = one.case
    load = Load(one.address, requests, case.expected, connections, amount.seconds, keeps=case.keeps)
    answers = pool.submit(drive, load).result(timeout=amount.seconds + _PATIENCE)
    case.give_back(requests[len(answers.latencies) :])
    case.answered(answers.contents)
    return answers
