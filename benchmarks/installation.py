"""One setup, installed: a data folder of its own, a running service, and the requests that it knows the answers to."""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import service
from benchmarks.cases import Case, for_project, hello_case, people_cases, resource_cases, token_cases
from benchmarks.filling import fill, fill_postgresql
from benchmarks.load import Load, drive
from benchmarks.service import Place, Service, Setup
from benchmarks.slow_disk import environment
from benchmarks.stock import Stock, prepared

_PATIENCE = 60.0


@dataclass(frozen=True)
class Installation:
    """A running service, whom it knows, and the cases by name; ``bare`` is the same web server around next to nothing.

    ``starts`` are the CPU seconds that each start took, ``memory_at_start`` the bytes right after the last one.
    """

    setup: Setup
    place: Place
    service: Service
    stock: Stock
    cases: Mapping[str, Case]
    starts: Sequence[float]
    memory_at_start: int
    bare: "Bare"


@dataclass(frozen=True)
class Bare:
    """A web server that runs beside, with the case that asks it."""

    service: Service
    place: Place
    case: Case


@contextmanager
def installed(
    setup: Setup, pool: Executor, *, starts: int = 1, waiting: int = 0, shown: int = 50
) -> Iterator[Installation]:
    """The setup in a new folder, after so many starts, with so many sign-ins under way; nothing is left behind.

    So many different tokens are ``shown``, over and over. Raises NotServing, LoadFailed, NoCompiler, NoRoom.
    """
    with placed(setup) as place, ExitStack() as stack:
        stock = prepared(setup.checkout, place.ini, place.host, waiting=waiting)
        if setup.stored:
            with service.running(place):
                _have_each_token(stock, place, pool)
            if place.database_url is None:
                fill(place.ini.parent / "data" / "identity.sqlite", setup.stored, expired=setup.expired)
            else:
                fill_postgresql(place.database_url, Path(tempfile.gettempdir()), setup.stored, expired=setup.expired)
        spans = []
        for _ in range(starts - 1):
            with service.running(place) as (_, span):
                spans.append(span)
        running, span = stack.enter_context(service.running(place))
        memory = running.rss()
        bare = stack.enter_context(_bare(place))
        bodies = answers(for_project(stock), shown, place, pool)
        tokens = [json.loads(body)["access_token"] for body in bodies]
        known = (*token_cases(stock), *resource_cases(stock, tokens), *people_cases(stock))
        cases = {case.name: case for case in known}
        yield Installation(setup, place, running, stock, cases, [*spans, span], memory, bare)


@contextmanager
def placed(setup: Setup) -> Iterator[Place]:
    """A new data folder beside the one of ``make run``, so on the same disk, with the ini file; deleted in the end."""
    with folder_on_disk() as folder, ExitStack() as stack:
        url, database = stack.enter_context(_postgresql()) if setup.storage == "postgresql" else (None, None)
        slowly = environment(folder, setup.slow_disk) if setup.slow_disk else {}
        ini, port = folder / "benchmark.ini", service.free_port()
        service.write_ini(ini, setup, port=port, data=folder / "data", database_url=url)
        yield Place(setup, ini, port, folder / "service.log", database, slowly, url)


@contextmanager
def folder_on_disk() -> Iterator[Path]:
    """A new folder beside the data folder of ``make run``, so on the same disk; deleted in the end."""
    parent = service.ROOT / "var"
    parent.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"benchmark-{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _bare(beside: Place) -> Iterator[Bare]:
    ini, port = beside.ini.with_name("hello.ini"), service.free_port()
    service.write_hello_ini(ini, beside.ini, port)
    place = Place(beside.setup, ini, port, beside.log)
    with service.running(place, serves_hello=True) as (running, _):
        yield Bare(running, place, hello_case(place.host))


def _have_each_token(stock: Stock, place: Place, pool: Executor) -> None:
    """Let there be a token of each kind."""
    answers(for_project(stock), 1, place, pool)
    answers(next(case for case in people_cases(stock) if case.name == "refresh"), 1, place, pool)


def answers(case: Case, count: int, place: Place, pool: Executor, *, alone: bool = False) -> list[bytes]:
    """What so many requests of the case are answered with; after those that it needs before, unless these are done."""
    if case.before is not None and not alone:
        answers(case.before, count, place, pool)
    load = Load(place.address, case.take(count), case.expected, connections=1, seconds=_PATIENCE, keeps=True)
    contents = pool.submit(drive, load).result(timeout=2 * _PATIENCE).contents
    case.answered(contents)
    return contents


@contextmanager
def _postgresql() -> Iterator[tuple[str, int]]:
    """A new database of a server of our own, which waits for its disk as in production, and the server's process id."""
    from identity.testing.postgresql import PostgresqlServer, new_database

    # Not below our own folder: the server may run as another user, who cannot enter it.
    server = PostgresqlServer(Path(tempfile.gettempdir()) / f"identity-benchmark-{secrets.token_hex(4)}")
    try:
        yield new_database(server), server.process_id
    finally:
        server.close()
