"""Memory of the service, and the CPU time of its start."""

from collections.abc import Iterable
from concurrent.futures import Executor

from benchmarks.browser_sign_in import sign_in_visitor
from benchmarks.cpu_ratios import TITLES
from benchmarks.installations import install_service
from benchmarks.measurement import MeasurementPlan, measure_cases
from benchmarks.service_process import ServiceConfiguration
from benchmarks.targets import MEMORY, START, TargetResult

_STARTS = 3
_MB = 1e6


def measure_memory(
    storages: Iterable[str], pool: Executor, amount: MeasurementPlan
) -> tuple[list[str], list[TargetResult]]:
    """Resident memory after the start, after all cases, and after hashing a password; at the end per process."""
    lines, results = [], []
    for storage in storages:
        with install_service(ServiceConfiguration(storage), pool, starts=_STARTS) as installation:
            measure_cases([installation], [TITLES], pool, amount)
            loaded = installation.service.resident_bytes() / _MB
            sign_in_visitor(installation.fixtures)
            hashed = installation.service.resident_bytes() / _MB
            parts = ", ".join(
                f"{process.memory_info().rss / _MB:.0f}" for process in installation.service.list_processes()
            )
        lines += [
            f"{storage}: {installation.memory_at_start / _MB:.0f} MB after the start, {loaded:.0f} after the load,"
            f" {hashed:.0f} after a sign-in with a password; of each process: {parts}",
            f"{storage}: {installation.start_cpu_seconds:.2f} s of CPU until the first answer",
        ]
        if storage == "sqlite":
            results = [
                TargetResult("MB after the load", loaded, MEMORY),
                TargetResult("start", installation.start_cpu_seconds, START),
            ]
    return lines, results
