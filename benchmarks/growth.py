"""Whether a request costs the same when much is stored: a small and a large database, asked in turn."""

from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from benchmarks.filling import PER_APPLICATION
from benchmarks.installation import installed
from benchmarks.measuring import Amount, Sample, Served, measure
from benchmarks.service import Setup

CASES = ("opaque", "userinfo", "introspection", "refresh")
SMALL = 1_000
LARGE = 10_000_000
CONNECTIONS = 16
#: So many different tokens are shown that their pages do not all stay in a cache.
_SHOWN = 1_000


@dataclass(frozen=True)
class Growth:
    """What each case costs with few and with many tokens stored."""

    setup: Setup
    tokens: int
    titles: Mapping[str, str]
    small: Mapping[str, Sample]
    large: Mapping[str, Sample]

    @property
    def ratios(self) -> Mapping[str, float]:
        """How many times as much a request costs, by case."""
        return {name: self.large[name].ratio / self.small[name].ratio for name in self.titles}

    @property
    def applications(self) -> int:
        """How many there are beside the many tokens."""
        return self.tokens // PER_APPLICATION


def find(setup: Setup, pool: Executor, *, tokens: int, rounds: int, seconds: float) -> Growth:
    """Fill and measure. Raises LoadFailed, NotServing, NoRoom."""
    small, large = replace(setup, stored=SMALL), replace(setup, stored=tokens)
    with ExitStack() as stack:
        both = [stack.enter_context(installed(one, pool, shown=_SHOWN)) for one in (small, large)]
        served = [Served.of(one, name) for name in CASES for one in both]
        figures, _ = measure(served, pool, Amount(3000, seconds, rounds, connections=[CONNECTIONS]))

    def of(one: Setup) -> Mapping[str, Sample]:
        return {name: figures[one, name, CONNECTIONS] for name in CASES}

    return Growth(setup, tokens, {one.case.name: one.case.title for one in served}, of(small), of(large))
