"""``python -m benchmarks``: without a mode, what each request costs beside node-oidc-provider."""

import argparse
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from benchmarks import flood, growth, instructions, memory, page, profile, purging, ratios, storing, workers
from benchmarks.filling import NoRoom
from benchmarks.instructions import NoValgrind
from benchmarks.load import LoadFailed, generator
from benchmarks.measuring import Amount
from benchmarks.service import NotServing
from benchmarks.targets import Verdict, summary

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
    """Run a mode and print what it found; returns the exit status: 1 for missed targets only with --strict."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    try:
        lines, verdicts = _run(options)
    except (LoadFailed, NoRoom, NoValgrind, NotServing) as problem:
        print(f"The benchmark was given up: {problem}")
        return 2
    except KeyboardInterrupt:
        return 130
    print("\n".join([*lines, *summary(verdicts)]))
    return 1 if options.strict and not all(one.holds for one in verdicts) else 0


def _run(options: argparse.Namespace) -> tuple[Iterable[str], list[Verdict]]:
    amount = Amount(options.requests, options.seconds, options.rounds, options.connections)
    storages, cases = options.storage, options.cases
    with generator() as pool, generator() as another:
        if options.page:
            return page.write(options.page_file, pool, amount)
        match options.mode:
            case "instructions":
                return instructions.find(storages or ["sqlite"], cases or list(ratios.TITLES), pool)
            case "profile":
                return profile.find((storages or ["sqlite"])[0], (cases or ["opaque"])[0], pool, options.seconds)
            case "memory":
                return memory.find(storages or ratios.STORAGES, pool, amount)
            case "flood":
                return flood.find(storages or ratios.STORAGES, (pool, another), options.rounds)
            case "workers":
                return workers.find(cases or workers.CASES, pool, amount)
            case "growth":
                return growth.find((storages or ["sqlite"])[0], pool, amount, options.tokens or growth.LARGE)
            case "purge":
                return purging.find((storages or ["sqlite"])[0], pool, options.tokens or purging.ROWS)
            case "storing":
                return storing.find((storages or ["sqlite"])[0], pool, options.requests)
        return ratios.find(storages or list(ratios.STORAGES), cases or list(ratios.TITLES), pool, amount)


def _parser() -> argparse.ArgumentParser:
    told = "\n".join(f"  {name:<14}{text}" for name, text in MODES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\nmodes:\n{told}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Amount()
    parser.add_argument("mode", nargs="?", choices=MODES, default="ratios", metavar="MODE")
    parser.add_argument("--storage", nargs="+", choices=ratios.STORAGES, help="the storages (both, or sqlite)")
    parser.add_argument("--cases", nargs="+", choices=tuple(ratios.TITLES), help="these requests alone")
    parser.add_argument("--rounds", type=int, default=default.rounds, metavar="N", help="rounds (%(default)s)")
    parser.add_argument("--seconds", type=float, default=default.seconds, metavar="S", help="of a round (%(default)s)")
    parser.add_argument("--requests", type=int, default=default.count, metavar="N", help="at most (%(default)s)")
    parser.add_argument("--connections", type=int, default=default.connections, metavar="N", help="(%(default)s)")
    parser.add_argument("--tokens", type=int, metavar="N", help="stored for growth (10 million) or purge (1 million)")
    parser.add_argument("--page", action="store_true", help="write the figures of docs/operators/one-machine instead")
    parser.add_argument("--page-file", type=Path, default=page.FILE, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    return parser


def _stop(*_: object) -> NoReturn:
    raise SystemExit(143)
