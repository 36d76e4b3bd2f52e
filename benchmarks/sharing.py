"""How much many requests gain by sharing a commit: requests per second where each fsync takes some milliseconds more.

Without sharing, a commit for each is the bound, whatever the processor. What is compared runs in turn in one run: the
service with and without sharing, or two checkouts of it.
"""

from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.installation import installed
from benchmarks.measuring import Amount, Sample, Served, measure
from benchmarks.service import Setup

CASES = ("opaque", "refresh")
CONNECTIONS = 32
_APART = (("identity.plugin.sql.share_commits", "false"),)


@dataclass(frozen=True)
class Sharing:
    """What was found, by case; ``apart`` is what was found of the other, with which it is compared."""

    delay: float
    setup: Setup
    other: Setup
    titles: Mapping[str, str]
    shared: Mapping[str, Sample]
    apart: Mapping[str, Sample]

    @property
    def gains(self) -> Mapping[str, float]:
        """How many times as many requests were answered, by case."""
        return {name: self.shared[name].rate / sample.rate for name, sample in self.apart.items()}


def find(setup: Setup, against: Path | None, pool: Executor, *, delay: float, rounds: int, seconds: float) -> Sharing:
    """Measure it, and the same without sharing or, if one is given, another checkout.

    Raises LoadFailed, NotServing, NoCompiler.
    """
    setup = replace(setup, slow_disk=delay)
    apart = replace(setup, settings=(*setup.settings, *_APART)) if against is None else replace(setup, checkout=against)
    with ExitStack() as stack:
        installations = [stack.enter_context(installed(one, pool)) for one in (setup, apart)]
        served = [Served.of(one, name) for name in CASES for one in installations]
        amount = Amount(5000, seconds, rounds, connections=[CONNECTIONS], openssl=False)
        figures, _ = measure(served, pool, amount)
    titles = {one.case.name: one.case.title for one in served}

    def of(one: Setup) -> Mapping[str, Sample]:
        return {name: figures[one, name, CONNECTIONS] for name in CASES}

    return Sharing(delay, setup, apart, titles, of(setup), of(apart))
