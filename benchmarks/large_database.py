"""Whether the cost of a request grows with the database: a small and a large one in turn."""

from concurrent.futures import Executor
from contextlib import ExitStack
from statistics import median

from benchmarks.database_fill import PER_APPLICATION
from benchmarks.installations import install_service
from benchmarks.measurement import MeasurementPlan, measure_cases, median_ratio
from benchmarks.service_process import ServiceConfiguration
from benchmarks.targets import GROWTH, TargetResult

CASES = ("opaque", "userinfo", "introspection", "refresh")
SMALL_TOKEN_COUNT, LARGE_TOKEN_COUNT = 1_000, 10_000_000
#: Enough different tokens that their pages do not all stay in a cache.
_PRESENTED_TOKENS = 1_000


def measure_large_database(
    storage: str, pool: Executor, amount: MeasurementPlan, tokens: int
) -> tuple[list[str], list[TargetResult]]:
    """Fill the databases and measure. Raises UnexpectedResponse, ServiceStartError, DiskTooSmall."""
    with ExitStack() as stack:
        both = [
            ServiceConfiguration(storage, stored_tokens=SMALL_TOKEN_COUNT),
            ServiceConfiguration(storage, stored_tokens=tokens),
        ]
        sides = [
            stack.enter_context(install_service(service_configuration, pool, presented_tokens=_PRESENTED_TOKENS))
            for service_configuration in both
        ]
        figures = measure_cases(sides, [CASES, CASES], pool, amount)
    lines = [
        f"{storage}: {tokens:,} tokens and {tokens // PER_APPLICATION:,} applications,"
        f" beside {SMALL_TOKEN_COUNT:,} tokens"
    ]
    results = []
    for name in CASES:
        small, large = figures[0, name], figures[1, name]
        results.append(TargetResult(f"growth, {name}", median_ratio(large, small), GROWTH))
        lines.append(f"{name:<16}{median(small) * 1e6:>8.0f} µs{median(large) * 1e6:>8.0f} µs  × {results[-1]}")
    return lines, results
