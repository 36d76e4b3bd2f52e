"""What ``make bench`` runs: start the service, drive it, tell what it costs, leave nothing behind."""

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NoReturn

from psutil import Process  # type: ignore[import-untyped]

from benchmarks import flood as login_flood
from benchmarks import growth, imports, machine, purging, report, scaling, service, sharing, storing
from benchmarks.cases import CODE_FLOW
from benchmarks.filling import NoRoom
from benchmarks.installation import Installation, folder_on_disk, installed, placed
from benchmarks.load import LoadFailed, generator
from benchmarks.measuring import Amount, Served, measure
from benchmarks.results import Result, Whole, as_json
from benchmarks.scaling import NoControl
from benchmarks.service import Setup
from benchmarks.slow_disk import NoCompiler
from benchmarks.stock import prepared

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
#: What is asked of a service on PostgreSQL unless other cases are named.
ON_POSTGRESQL = ("opaque", "userinfo", "introspection", "refresh")
#: With those that nobody has to ask for by default.
KNOWN = (*CASES, "single-use")
_DELAY = 2.0
#: How many threads answer unless a number is given.
THREADS = {"sqlite": 1, "postgresql": 8}
DEFAULT = (("waitress", "sqlite"), ("granian", "sqlite"), ("waitress", "postgresql"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit status. Missed targets are told, they are no failure."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    setups = _setups(options)
    for setup in setups:
        if not service.is_installed(setup.server):
            print(f"{setup.server} is not installed; the extra `bench` brings it.")
            return 2
    try:
        if options.profile is not None:
            print(_profile(options.profile, setups[0], options.requests))
            return 0
        if options.console:
            print(_console(setups[0]))
            return 0
        with generator() as pool, generator() as another:
            if options.bytes:
                print(storing.table(setups[0], pool, options.requests))
                return 0
            result = _run(options, setups, (pool, another))
    except (LoadFailed, NoControl, NoRoom, service.NotServing) as problem:
        print(f"The benchmark was given up: {problem}")
        return 1
    except KeyboardInterrupt:
        return 130
    print(report.text(result))
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(result), indent=2) + "\n", "utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    where = parser.add_argument_group("where", "by default waitress and granian on SQLite, and waitress on PostgreSQL")
    where.add_argument("--server", nargs="+", choices=service.SERVERS, help="web servers (waitress)")
    where.add_argument("--storage", nargs="+", choices=tuple(THREADS), help="storages (sqlite)")
    where.add_argument("--threads", type=int, metavar="N", help="threads that answer (1 on SQLite, 8 on PostgreSQL)")
    where.add_argument("--workers", type=int, default=0, metavar="N", help="processes under a supervisor (none)")
    where.add_argument(
        "--set", nargs="+", type=_setting, default=[], metavar="NAME=VALUE", help="settings besides development.ini's"
    )
    where.add_argument("--against", type=Path, metavar="PATH", help="another checkout, in turn with this one")
    what = parser.add_argument_group("what", "by default everything but single-use, and what stands instead")
    what.add_argument("--cases", nargs="+", choices=KNOWN, metavar="CASE", help=f"these alone: {', '.join(KNOWN)}")
    what.add_argument("--flood", action="store_true", help="how others are answered during a flood of logins, alone")
    what.add_argument(
        "--slow-disk",
        type=float,
        nargs="?",
        const=_DELAY,
        metavar="MS",
        help="what sharing commits gains where each fsync takes so many milliseconds more (2), alone",
    )
    what.add_argument(
        "--sizes",
        type=int,
        nargs="?",
        const=growth.LARGE,
        metavar="TOKENS",
        help=f"what requests cost where so many tokens are stored ({growth.LARGE:,}), instead: takes minutes and GB",
    )
    what.add_argument(
        "--purge",
        type=int,
        nargs="?",
        const=purging.ROWS,
        metavar="ROWS",
        help=f"requests beside a purge of so many tokens ({purging.ROWS:,}), instead: takes long, and GB",
    )
    what.add_argument("--bytes", action="store_true", help="what the database grows by for each request, instead")
    what.add_argument("--scaling", action="store_true", help="what further workers gain, instead; takes root")
    what.add_argument("--profile", choices=("start", *KNOWN[1:]), metavar="CASE", help="where the time of one goes")
    what.add_argument("--console", action="store_true", help="console pages over a large database, instead")
    much = parser.add_argument_group("how much")
    much.add_argument(
        "--connections", nargs="+", type=int, default=[16, 1], metavar="N", help="the first is judged (16 1)"
    )
    much.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds to take the median of (3)")
    much.add_argument("--requests", type=int, default=3000, metavar="N", help="requests per round and case (3000)")
    much.add_argument("--seconds", type=float, default=0.8, metavar="S", help="the longest round of a case (0.8)")
    much.add_argument("--starts", type=int, default=3, metavar="N", help="starts to take the median of (3)")
    much.add_argument(
        "--unit", choices=("openssl", "cryptography"), default="openssl", help="whose signature is the unit (openssl)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE as well")
    return parser


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is no NAME=VALUE")
    return name, value


def _setups(options: argparse.Namespace) -> list[Setup]:
    """What is measured, this checkout's setups first."""
    pairs: Iterable[tuple[str, str]] = DEFAULT
    alone = (
        options.flood
        or options.slow_disk is not None
        or options.sizes is not None
        or options.scaling
        or options.purge is not None
        or options.profile is not None
        or options.console
        or options.bytes
    )
    if alone or options.server is not None or options.storage is not None:
        pairs = product(options.server or ["waitress"], options.storage or ["sqlite"])
    ours = [
        Setup(
            server,
            storage,
            options.threads or THREADS[storage],
            settings=tuple(options.set),
            workers=options.workers,
        )
        for server, storage in pairs
    ]
    if options.against is None:
        return ours
    return ours + [replace(one, checkout=options.against.resolve()) for one in ours]


def _run(options: argparse.Namespace, setups: Sequence[Setup], pools: tuple[Executor, Executor]) -> Result:
    result = Result(options.rounds, options.connections)
    if options.sizes is not None:
        _say("filling a database")
        return _growth(options, setups, pools[0], result)
    if options.scaling:
        _say("holding workers back")
        found = scaling.find(setups[0], pools[0], rounds=options.rounds, seconds=2 * options.seconds)
        return replace(result, scaling=found)
    if options.purge is not None:
        _say("filling a database and purging it")
        return replace(result, purging=purging.find(setups[0], pools[0], rows=options.purge))
    everything = options.cases is None and not options.flood and options.slow_disk is None
    cases, flood = everything or options.cases is not None, everything or options.flood
    with folder_on_disk() as folder, ExitStack() as stack:
        result = replace(result, disk=machine.sync(folder))
        if cases or flood:
            waiting = login_flood.names_for(options.rounds) if flood else 0
            starts = options.starts if cases else 1
            _say("starting")
            running = [stack.enter_context(installed(one, pools[0], starts=starts, waiting=waiting)) for one in setups]
            if cases:
                _say("asking")
                result = _cases(options, running, pools[0], folder, result)
            if flood:
                _say("flooding")
                floods = {one.setup: login_flood.measure(one, pools, options.rounds) for one in running}
                result = replace(result, floods=floods)
    if everything or options.slow_disk is not None:
        _say("slowing the disk")
        result = _sharing(options, setups, pools[0], result)
    return result


def _cases(
    options: argparse.Namespace, running: Sequence[Installation], pool: Executor, folder: Path, result: Result
) -> Result:
    """The result with what the cases cost, and what each service takes as a whole."""
    names = {one.setup: _names(options, one.setup) for one in running}
    # Case by case, so that setups are compared in the same minute.
    served = [Served.of(one, name) for name in KNOWN for one in running if name in names[one.setup]]
    amount = Amount(
        options.requests, options.seconds, options.rounds, options.connections, openssl=options.unit == "openssl"
    )
    figures, units = measure(served, pool, amount, sums=[CODE_FLOW], disk=folder)
    return replace(
        result,
        titles={one.setup: _titles(one, names[one.setup]) for one in running},
        wholes={
            one.setup: Whole(one.starts, one.memory_at_start, one.service.rss(), _memory(one.service.workers()))
            for one in running
        },
        figures=figures,
        units=units,
    )


def _memory(workers: Sequence[Process]) -> list[tuple[int, int]]:
    """Of each the resident memory in bytes, and what it shares with none."""
    return [(one.rss, one.uss) for one in (worker.memory_full_info() for worker in workers)]


def _names(options: argparse.Namespace, setup: Setup) -> list[str]:
    """The cases of one setup, in their order."""
    chosen = options.cases or (ON_POSTGRESQL if setup.storage == "postgresql" else CASES)
    return [name for name in KNOWN if name in chosen]


def _titles(installation: Installation, names: Sequence[str]) -> dict[str, str]:
    """Of these cases, and of the sum below the last of its parts."""
    titles = {}
    for case in (Served.of(installation, name).case for name in names):
        titles[case.name] = case.title
        if case.name == CODE_FLOW.parts[-1] and set(names).issuperset(CODE_FLOW.parts):
            titles[CODE_FLOW.name] = CODE_FLOW.title
    return titles


def _sharing(options: argparse.Namespace, setups: Sequence[Setup], pool: Executor, result: Result) -> Result:
    """The result with what sharing commits gains, or why that is not known."""
    delay = _DELAY if options.slow_disk is None else options.slow_disk
    setup = _first_on_sqlite(setups)
    if setup is None:
        return replace(result, notes=["The disk is made slow for SQLite alone."])
    try:
        found = sharing.find(
            setup, options.against, pool, delay=delay, rounds=options.rounds, seconds=2 * options.seconds
        )
    except NoCompiler as problem:
        return replace(result, notes=[f"What sharing commits gains was not measured: {problem}."])
    return replace(result, sharing=found)


def _growth(options: argparse.Namespace, setups: Sequence[Setup], pool: Executor, result: Result) -> Result:
    """The result with what requests cost where much is stored."""
    found = growth.find(setups[0], pool, tokens=options.sizes, rounds=options.rounds, seconds=2 * options.seconds)
    return replace(result, growth=found)


def _first_on_sqlite(setups: Sequence[Setup]) -> Setup | None:
    return next((one for one in setups if one.storage == "sqlite"), None)


def _profile(name: str, setup: Setup, count: int) -> str:
    if name == "start":
        return imports.table()
    from benchmarks import breakdown

    with placed(setup) as place:
        return breakdown.of(name, place, prepared(setup.checkout, place.ini, place.host), count)


def _console(setup: Setup) -> str:
    from benchmarks import console

    with placed(setup) as place:
        return console.table(console.measure(place))


def _say(what: str) -> None:
    """What it is about, for whoever waits for the figures."""
    print(f"{what} …", file=sys.stderr, flush=True)


def _stop(*_: object) -> NoReturn:
    raise SystemExit(143)
