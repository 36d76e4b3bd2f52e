"""What ``make bench`` runs: start the service, drive it, tell what it costs, leave nothing behind."""

import argparse
import json
import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

from benchmarks import flood as login_flood
from benchmarks import imports, service
from benchmarks.cases import (
    CODE_FLOW,
    Case,
    Stock,
    Sum,
    for_project,
    hello_case,
    people_cases,
    prepare,
    resource_cases,
    token_cases,
)
from benchmarks.flood import Flood
from benchmarks.load import Load, LoadFailed, drive, generator
from benchmarks.measuring import Amount, Served, measure
from benchmarks.report import Conditions, Result, as_json, flood_as_json, flood_table, table
from benchmarks.service import Place, Service
from benchmarks.slow_disk import NoCompiler
from benchmarks.slow_disk import environment as environment_of

CASES = (
    "hello",
    "discovery",
    "keys",
    "opaque",
    "jwt",
    "userinfo",
    "introspection",
    "authorize",
    "code",
    "refresh",
)
NOT_BY_DEFAULT = ("single-use",)
_TOKENS = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit status. Missed targets are told, they are no failure."""
    options = _parser().parse_args(arguments)
    if options.cases is None:
        options.cases = () if options.flood else CASES
        options.flood = True
    if options.threads is None:
        options.threads = 1 if options.storage == "sqlite" else 8
    signal.signal(signal.SIGTERM, _stop)
    if not service.is_installed(options.server):
        print(f"{options.server} is not installed; the extra `bench` brings it.")
        return 2
    try:
        if options.profile is not None:
            return _profile(options)
        if options.console:
            return _console(options)
        with generator() as pool, generator() as another:
            result, flood = _run(options, (pool, another))
    except (LoadFailed, NoCompiler, service.NotServing) as problem:
        print(f"The benchmark was given up: {problem}")
        return 1
    except KeyboardInterrupt:
        return 130
    figures: dict[str, Any] = {}
    if result is not None:
        print(table(result), imports.table(), sep="\n")
        figures |= as_json(result)
    if flood is not None:
        print(flood_table(flood))
        figures |= flood_as_json(flood)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--server", choices=service.SERVERS, default="waitress")
    parser.add_argument("--threads", type=int, metavar="N", help="threads that answer (1 on SQLite, 8 on PostgreSQL)")
    parser.add_argument("--storage", choices=("sqlite", "postgresql"), default="sqlite")
    known = (*CASES, *NOT_BY_DEFAULT)
    parser.add_argument("--cases", nargs="+", choices=known, metavar="CASE", help=f"these alone: {', '.join(known)}")
    parser.add_argument("--flood", action="store_true", help="how others are answered during a flood of logins, alone")
    parser.add_argument("--console", action="store_true", help="console pages over a large database, alone")
    parser.add_argument(
        "--connections", nargs="+", type=int, default=[16, 1], metavar="N", help="the first is judged (16 1)"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds to take the median of (3)")
    parser.add_argument("--requests", type=int, default=1500, metavar="N", help="requests per round and case (1500)")
    parser.add_argument("--seconds", type=float, default=1.2, metavar="S", help="the longest round of a case (1.2)")
    parser.add_argument(
        "--unit", choices=("openssl", "cryptography"), default="openssl", help="whose signature is the unit (openssl)"
    )
    parser.add_argument("--starts", type=int, default=3, metavar="N", help="starts to take the median of (3)")
    parser.add_argument(
        "--slow-disk", type=float, default=0.0, metavar="MS", help="each fsync of the service takes so much longer (0)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE as well")
    parser.add_argument(
        "--profile", choices=known[1:], metavar="CASE", help="where the time of one case goes, instead of the table"
    )
    return parser


def _run(options: argparse.Namespace, pools: tuple[Executor, Executor]) -> tuple[Result | None, Flood | None]:
    pool, _ = pools
    with _place(options) as place, ExitStack() as stack:
        stock = prepare(place.ini, place.host, waiting=login_flood.names_for(options.rounds) if options.flood else 0)
        running, starts = _started(options, place, stack)
        memory_at_start = running.rss()
        cases = _cases(stock, place, pool)
        result = flood = None
        if options.cases:
            served = _served(options, place, running, cases, stack)
            figures, units = measure(served, pool, _amount(options), options.connections, _sums(options))
            result = Result(
                Conditions(options.server, options.threads, options.storage, options.rounds, options.connections),
                _rows(options, served),
                figures,
                units,
                starts,
                memory_at_start,
                running.rss(),
                _disk(place.ini.parent),
            )
        if options.flood:
            asked = [cases[name] for name in login_flood.ASKED]
            flood = login_flood.measure(stock, asked, place.address, pools, options.rounds)
        return result, flood


def _started(options: argparse.Namespace, place: Place, stack: ExitStack) -> tuple[Service, list[float]]:
    """The service after as many starts as are asked for, and how long each took; it is ended with the stack."""
    starts = []
    number = options.starts if options.cases else 1
    for left in reversed(range(number)):
        with ExitStack() as trial:
            running, seconds = trial.enter_context(service.running(place))
            starts.append(seconds)
            if left == 0:
                stack.push(trial.pop_all())
    return running, starts


def _amount(options: argparse.Namespace) -> Amount:
    return Amount(
        options.requests,
        options.seconds,
        options.rounds,
        warm_up=min(200, options.requests),
        openssl=options.unit == "openssl",
    )


def _sums(options: argparse.Namespace) -> list[Sum]:
    return [one for one in (CODE_FLOW,) if set(one.parts) <= set(options.cases)]


def _rows(options: argparse.Namespace, served: Sequence[Served]) -> list[Case | Sum]:
    """The cases, and each sum below the last of its parts."""
    rows: list[Case | Sum] = []
    for one in served:
        rows.append(one.case)
        rows += [total for total in _sums(options) if total.parts[-1] == one.case.name]
    return rows


def _cases(stock: Stock, place: Place, pool: Executor) -> dict[str, Case]:
    """All cases by name, but for the bare web server, which runs beside the service."""
    tokens = _tokens(stock, place, pool)
    return {case.name: case for case in (*token_cases(stock), *resource_cases(stock, tokens), *people_cases(stock))}


def _served(
    options: argparse.Namespace, place: Place, running: Service, cases: Mapping[str, Case], stack: ExitStack
) -> list[Served]:
    served = {name: Served(case, running, place.address) for name, case in cases.items()}
    if "hello" in options.cases:
        ini = place.ini.with_name("hello.ini")
        port = service.free_port()
        service.write_hello_ini(ini, place.ini, port)
        beside = Place(ini, port, place.server, place.threads, place.log)
        bare, _ = stack.enter_context(service.running(beside, serves_hello=True))
        served["hello"] = Served(hello_case(beside.host), bare, beside.address)
    return [served[name] for name in options.cases]


def _tokens(stock: Stock, place: Place, pool: Executor) -> list[str]:
    case: Case = for_project(stock)
    load = Load(place.address, case.take(_TOKENS), case.expected, connections=1, seconds=30.0, keeps=True)
    answers = pool.submit(drive, load).result(timeout=60)
    return [json.loads(body)["access_token"] for body in answers.contents]


def _place(options: argparse.Namespace) -> AbstractContextManager[Place]:
    return prepared_place(options.storage, options.server, options.threads, options.slow_disk)


@contextmanager
def prepared_place(storage: str, server: str, threads: int, slow_disk: float = 0.0) -> Iterator[Place]:
    """A new data folder beside the one of ``make run``, so on the same disk, with the ini file; deleted in the end."""
    parent = service.ROOT / "var"
    parent.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"benchmark-{os.getpid()}-", dir=parent))
    try:
        with ExitStack() as stack:
            url, database = stack.enter_context(_postgresql()) if storage == "postgresql" else (None, None)
            environment = environment_of(folder, slow_disk) if slow_disk else {}
            port = service.free_port()
            ini = folder / "benchmark.ini"
            service.write_ini(ini, port=port, data=folder / "data", threads=threads, database_url=url)
            yield Place(ini, port, server, threads, folder / "service.log", database, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgresql() -> Iterator[tuple[str, int]]:
    """A new database of a server of our own, which waits for its disk as in production, and the server's process id."""
    from identity.testing.postgresql import PostgresqlServer, new_database

    # Not below our own folder: the server may run as another user, who cannot enter it.
    server = PostgresqlServer(Path(tempfile.gettempdir()) / f"identity-benchmark-{os.getpid()}")
    try:
        yield new_database(server), server.process_id
    finally:
        server.close()


def _profile(options: argparse.Namespace) -> int:
    from benchmarks import breakdown

    with _place(options) as place:
        stock = prepare(place.ini, place.host)
        print(breakdown.of(options.profile, place, stock, options.requests))
    return 0


def _console(options: argparse.Namespace) -> int:
    from benchmarks import console

    with _place(options) as place:
        print(console.table(console.measure(place)))
    return 0


def _disk(folder: Path) -> float:
    """How long a commit has to wait at least: the median time of writing and syncing a page."""
    path = folder / "disk"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    spans = []
    try:
        for _ in range(50):
            started = time.perf_counter()
            os.write(descriptor, b"\0" * 4096)
            os.fsync(descriptor)
            spans.append(time.perf_counter() - started)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(spans)


def _stop(*_: object) -> NoReturn:
    raise SystemExit(143)
