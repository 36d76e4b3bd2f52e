"""The cost of a request with two workers on PostgreSQL, including the database, relative to one worker."""

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from statistics import median

from benchmarks.installations import install_service
from benchmarks.measurement import MeasurementPlan, measure_cases, median_ratio
from benchmarks.service_process import ServiceConfiguration
from benchmarks.targets import WORKERS, TargetResult

CASES = ("opaque", "introspection", "userinfo")


def measure_worker_scaling(
    names: Sequence[str], pool: Executor, amount: MeasurementPlan
) -> tuple[list[str], list[TargetResult]]:
    """CPU with one and two workers, and the memory of each process; the target is for tokens. Raises
    UnexpectedResponse.
    """
    with ExitStack() as stack:
        setups = (ServiceConfiguration("postgresql", server=(("workers", number),)) for number in ("1", "2"))
        sides = [stack.enter_context(install_service(setup, pool)) for setup in setups]
        figures = measure_cases(sides, [names, names], pool, amount)
        workers = [worker.memory_full_info() for worker in sides[1].service.list_workers()]
    lines = [f"PostgreSQL, {amount.connections} connections: µs of CPU a request with one worker, and with two"]
    results = []
    for name in names:
        single, double = figures[0, name], figures[1, name]
        result = TargetResult(f"two workers, {name}", median_ratio(double, single), WORKERS)
        if name == "opaque":
            results.append(result)
        cell = result if name == "opaque" else f"{result.value:.2f}"
        lines.append(f"{name:<16}{median(single) * 1e6:>8.0f}{median(double) * 1e6:>8.0f}  × {cell}")
    lines += [f"worker: {worker.rss / 1e6:.0f} MB, {worker.uss / 1e6:.0f} MB of its own" for worker in workers]
    return lines, results
