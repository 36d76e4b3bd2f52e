"""Whether a request costs the same when much is stored: a small and a large database, asked in turn."""

from concurrent.futures import Executor
from contextlib import ExitStack
from statistics import median

from benchmarks.filling import PER_APPLICATION
from benchmarks.installation import installed
from benchmarks.measuring import Amount, measure, ratio
from benchmarks.service import Setup
from benchmarks.targets import GROWTH, Verdict

CASES = ("opaque", "userinfo", "introspection", "refresh")
SMALL, LARGE = 1_000, 10_000_000
#: So many different tokens are shown that their pages do not all stay in a cache.
_SHOWN = 1_000


def find(storage: str, pool: Executor, amount: Amount, tokens: int) -> tuple[list[str], list[Verdict]]:
    """Fill and measure. Raises LoadFailed, NotServing, NoRoom."""
    with ExitStack() as stack:
        both = [Setup(storage, stored=SMALL), Setup(storage, stored=tokens)]
        sides = [stack.enter_context(installed(one, pool, shown=_SHOWN)) for one in both]
        figures = measure(sides, [CASES, CASES], pool, amount)
    lines = [f"{storage}: {tokens:,} tokens and {tokens // PER_APPLICATION:,} applications, beside {SMALL:,} tokens"]
    verdicts = []
    for name in CASES:
        small, large = figures[0, name], figures[1, name]
        verdicts.append(Verdict(f"growth, {name}", ratio(large, small), GROWTH))
        lines.append(f"{name:<16}{median(small) * 1e6:>8.0f} µs{median(large) * 1e6:>8.0f} µs  × {verdicts[-1]}")
    return lines, verdicts
