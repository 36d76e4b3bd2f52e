"""Memory of the service, and the CPU time of a start."""

from collections.abc import Iterable
from concurrent.futures import Executor

from benchmarks.installation import installed
from benchmarks.measuring import Amount, measure
from benchmarks.ratios import TITLES
from benchmarks.service import Setup
from benchmarks.sign_in import sign_in
from benchmarks.targets import MEMORY, START, Verdict

_STARTS = 3
_MB = 1e6


def find(storages: Iterable[str], pool: Executor, amount: Amount) -> tuple[list[str], list[Verdict]]:
    """Resident memory at the start, after all cases, and after a password's hash; of each process at the end."""
    lines, verdicts = [], []
    for storage in storages:
        with installed(Setup(storage), pool, starts=_STARTS) as one:
            measure([one], [TITLES], pool, amount)
            loaded = one.service.rss() / _MB
            sign_in(one.known)
            hashed = one.service.rss() / _MB
            each = ", ".join(f"{process.memory_info().rss / _MB:.0f}" for process in one.service.processes())
        lines += [
            f"{storage}: {one.memory_at_start / _MB:.0f} MB after the start, {loaded:.0f} after the load,"
            f" {hashed:.0f} after a sign-in with a password; of each process: {each}",
            f"{storage}: {one.start:.2f} s of CPU until the first answer",
        ]
        if storage == "sqlite":
            verdicts = [Verdict("MB after the load", loaded, MEMORY), Verdict("start", one.start, START)]
    return lines, verdicts
