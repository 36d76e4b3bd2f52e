"""Writes the results for the page "What one machine does" from one run, as the file that the page includes."""

import datetime
import os
import platform
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from statistics import median

from benchmarks.browser_sign_in import sign_in_visitor
from benchmarks.installations import Installation, install_service
from benchmarks.measurement import CODE_FLOW, MeasurementPlan, measure_cases
from benchmarks.service_process import ROOT, ServiceConfiguration
from benchmarks.targets import TargetResult

RESULTS_FILE = ROOT / "docs" / "explanation" / "one-machine-figures.txt"
_STORAGES = ("sqlite", "postgresql")
_TITLES = {
    "opaque": "Token by assertion (opaque), with ID token",
    "jwt": "Token by assertion (JWT), with ID token",
    "introspection": "Introspection",
    "userinfo": "Userinfo",
    "refresh": "Refresh with rotation",
    CODE_FLOW: "Code flow in a session",
    "sign-in": "Sign-in with a password, from request to code",
}
_SIGN_INS = 12
#: Published by ZITADEL in September 2026, on up to 42 vCPU for the service and 8 for the database.
_ZITADEL_REQUESTS_PER_SECOND = 2334


def write_one_machine_page(file: Path, pool: Executor, amount: MeasurementPlan) -> tuple[list[str], list[TargetResult]]:
    """Measure, and write the file. Raises UnexpectedResponse, ServiceStartError."""
    load = os.getloadavg()[0]
    names = [name for name in _TITLES if name != "sign-in"]
    with ExitStack() as stack:
        sides = [stack.enter_context(install_service(ServiceConfiguration(storage), pool)) for storage in _STORAGES]
        figures = measure_cases(sides, [names, names], pool, amount)
        cpu = {(index, name): median(figures[index, name]) for index in range(len(sides)) for name in names}
        cpu |= {(index, "sign-in"): _measure_sign_in(side) for index, side in enumerate(sides)}
    file.write_text("\n".join(_format_lines(cpu, amount, load)) + "\n", "utf-8")
    return [f"{file} is written."], []


def _measure_sign_in(side: Installation) -> float:
    """CPU seconds of a sign-in at a new browser."""
    sign_in_visitor(side.fixtures)
    before = side.service.cpu_seconds()
    for _ in range(_SIGN_INS):
        sign_in_visitor(side.fixtures)
    return (side.service.cpu_seconds() - before) / _SIGN_INS


def _format_lines(cpu: dict[tuple[int, str], float], amount: MeasurementPlan, load: float) -> Iterator[str]:
    yield ".. Written by make bench ARGS=--page"
    yield ""
    yield f"Measured on {datetime.datetime.now(datetime.UTC):%d %B %Y}: {_cpu_model()}, {os.cpu_count()} processors,"
    yield f"Python {platform.python_version()}, {amount.connections} connections, median of {amount.rounds} rounds; the"
    yield f"machine's load average before was {load:.1f}."
    yield ""
    yield from (".. list-table::", "   :header-rows: 1", "", "   * - Request")
    for storage in ("SQLite", "PostgreSQL"):
        yield from (f"     - {storage}, µs of CPU", "     - A second and core")
    for name, title in _TITLES.items():
        yield f"   * - {title}"
        for storage_index in range(len(_STORAGES)):
            yield f"     - {cpu[storage_index, name] * 1e6:,.0f}"
            yield f"     - {_requests_per_second(cpu[storage_index, name])}"
    yield ""
    rate, seconds = _ZITADEL_REQUESTS_PER_SECOND, cpu[1, "opaque"]
    cores = rate * seconds
    yield f"**Computed, not measured:** {rate:,} tokens by assertion a second on PostgreSQL take"
    yield f"{rate:,} × {seconds * 1e6:,.0f} µs = {cores:.1f} processors, service and database together;"
    yield f"with half of each left free, {ceil(2 * cores)}."


def _requests_per_second(cpu: float) -> str:
    """Requests per second on one processor, to two digits."""
    rate = 1 / cpu
    return f"{float(f'{rate:.2g}'):,.0f}" if rate >= 10 else f"{rate:.1f}"


def _cpu_model() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(": ")[2].strip() for line in file if line.startswith("model name")), "unknown")
