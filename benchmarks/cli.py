"""``python -m benchmarks``: without a mode, the cost of each request compared with node-oidc-provider."""

import argparse
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from benchmarks import (
    cpu_profile,
    cpu_ratios,
    disk_usage,
    instruction_counts,
    large_database,
    login_flood,
    memory_usage,
    one_machine_page,
    purge_latency,
    worker_scaling,
)
from benchmarks.database_fill import DiskTooSmall
from benchmarks.instruction_counts import ValgrindMissing
from benchmarks.load_generator import UnexpectedResponse, load_generator_process
from benchmarks.measurement import MeasurementPlan
from benchmarks.service_process import ServiceStartError
from benchmarks.targets import TargetResult, format_summary

MODES = {
    "ratios": "CPU of each request beside node-oidc-provider's, with verdicts (without a mode)",
    "instructions": "instructions of a request, counted by callgrind: steady within 1 % on a busy machine too",
    "profile": "in which functions a request's time goes, sampled in the running service",
    "memory": "memory after the start and after the load, and the CPU time of a start",
    "flood": "p95 of tokens, introspection and userinfo, idle and during a flood of sign-ins",
    "workers": "CPU of a request with two workers on PostgreSQL, beside one",
    "growth": "CPU of a request with many tokens stored, beside few",
    "purge": "latencies beside `identity purge`",
    "storing": "bytes that the database grows by with each request",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a mode and print its results; returns the exit status: 1 for missed targets only with --strict."""
    options = _create_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    try:
        lines, results = _run_mode(options)
    except (UnexpectedResponse, DiskTooSmall, ValgrindMissing, ServiceStartError) as problem:
        print(f"The benchmark was given up: {problem}")
        return 2
    except KeyboardInterrupt:
        return 130
    print("\n".join([*lines, *format_summary(results)]))
    return 1 if options.strict and not all(target_result.is_met for target_result in results) else 0


def _run_mode(options: argparse.Namespace) -> tuple[Iterable[str], list[TargetResult]]:
    amount = MeasurementPlan(options.requests, options.seconds, options.rounds, options.connections)
    storages, cases = options.storage, options.cases
    with load_generator_process() as pool, load_generator_process() as another:
        if options.page:
            return one_machine_page.write_one_machine_page(options.page_file, pool, amount)
        match options.mode:
            case "instructions":
                return instruction_counts.count_instructions(
                    storages or ["sqlite"], cases or list(cpu_ratios.TITLES), pool
                )
            case "profile":
                return cpu_profile.profile_case(
                    (storages or ["sqlite"])[0], (cases or ["opaque"])[0], pool, options.seconds
                )
            case "memory":
                return memory_usage.measure_memory(storages or cpu_ratios.STORAGES, pool, amount)
            case "flood":
                return login_flood.measure_flood(storages or cpu_ratios.STORAGES, (pool, another), options.rounds)
            case "workers":
                return worker_scaling.measure_worker_scaling(cases or worker_scaling.CASES, pool, amount)
            case "growth":
                return large_database.measure_large_database(
                    (storages or ["sqlite"])[0], pool, amount, options.tokens or large_database.LARGE_TOKEN_COUNT
                )
            case "purge":
                return purge_latency.measure_purge(
                    (storages or ["sqlite"])[0], pool, options.tokens or purge_latency.ROWS
                )
            case "storing":
                return disk_usage.measure_disk_usage((storages or ["sqlite"])[0], pool, options.requests)
        return cpu_ratios.measure_ratios(
            storages or list(cpu_ratios.STORAGES), cases or list(cpu_ratios.TITLES), pool, amount
        )


def _create_parser() -> argparse.ArgumentParser:
    modes = "\n".join(f"  {name:<14}{text}" for name, text in MODES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\nmodes:\n{modes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = MeasurementPlan()
    parser.add_argument("mode", nargs="?", choices=MODES, default="ratios", metavar="MODE")
    parser.add_argument("--storage", nargs="+", choices=cpu_ratios.STORAGES, help="the storages (both, or sqlite)")
    parser.add_argument("--cases", nargs="+", choices=tuple(cpu_ratios.TITLES), help="these requests alone")
    parser.add_argument("--rounds", type=int, default=default.rounds, metavar="N", help="rounds (%(default)s)")
    parser.add_argument("--seconds", type=float, default=default.seconds, metavar="S", help="of a round (%(default)s)")
    parser.add_argument("--requests", type=int, default=default.count, metavar="N", help="at most (%(default)s)")
    parser.add_argument("--connections", type=int, default=default.connections, metavar="N", help="(%(default)s)")
    parser.add_argument("--tokens", type=int, metavar="N", help="stored for growth (10 million) or purge (1 million)")
    parser.add_argument("--page", action="store_true", help="write the figures of docs/explanation/one-machine instead")
    parser.add_argument(
        "--page-file", type=Path, default=one_machine_page.RESULTS_FILE, metavar="FILE", help=argparse.SUPPRESS
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    return parser


def _exit_on_sigterm(*_: object) -> NoReturn:
    raise SystemExit(143)
