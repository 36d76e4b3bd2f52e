"""One side of a comparison, installed and running: the service in a new data folder, or node-oidc-provider."""

import json
import os
import secrets
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cases as requests
from benchmarks import service
from benchmarks.cases import NODE, SCOPE, Case, Known, Signer, Visitor, authorization
from benchmarks.filling import fill
from benchmarks.load import Load, drive
from benchmarks.preparing import prepare
from benchmarks.service import Place, Service, Setup

#: As ``.ci/run`` installs it.
PACKAGE = "oidc-provider@9.13.3"
#: For its storages: SQLite by a driver that npm has compiled for all systems, and PostgreSQL.
DRIVERS = ("libsql@0.5.29", "pg@8.23.1")
_SCRIPT = Path(__file__).with_name("node_provider.mjs")
_PATIENCE = 600.0


class NoNode(Exception):
    """node-oidc-provider cannot be run here."""


@dataclass(frozen=True)
class Installation:
    """A running side. ``start`` are CPU seconds until the first answer, ``memory_at_start`` the bytes after it."""

    name: str
    place: Place
    service: Service
    known: Known
    cases: Mapping[str, Case]
    start: float = 0.0
    memory_at_start: int = 0


@contextmanager
def installed(
    setup: Setup,
    pool: Executor,
    *,
    waiting: int = 0,
    shown: int = 50,
    starts: int = 1,
    change: Callable[[Place], Place] = lambda place: place,
) -> Iterator[Installation]:
    """The service, with so many pending sign-ins; userinfo and introspection are asked about ``shown`` tokens in turn.

    It is started so many times, in the place that ``change`` makes of its own; ``start`` is the median of them. Nothing
    is left behind. Raises NotServing, LoadFailed, NoRoom.
    """
    with placed(setup) as place, ExitStack() as stack:
        known = prepare(place.ini, place.host, waiting)
        if setup.stored:
            _store(setup, place, known, pool)
        place = change(place)
        spans = []
        for _ in range(starts - 1):
            with service.running(place) as (_, span):
                spans.append(span)
        running, span = stack.enter_context(service.running(place))
        start, memory = statistics.median([*spans, span]), running.rss()
        cases = _cases(known, place, pool, shown)
        yield Installation(setup.storage, place, running, known, cases, start, memory)


@dataclass(frozen=True)
class Node:
    """Where oidc-provider and the drivers of its storages are installed; ``drivers`` is None where they are not."""

    folder: Path
    version: str
    drivers: Path | None


@contextmanager
def installed_node(node: Node, storage: str, pool: Executor) -> Iterator[Installation]:
    """node-oidc-provider in one process of Node.js, on the same kind of storage. Raises NotServing, LoadFailed.

    Its adapter is a table of JSON by key, as in the package's examples, on SQLite (write-ahead log, synchronous FULL)
    or on a PostgreSQL of its own, whose CPU time counts; each write is one durable commit. Without the drivers
    everything is in memory, which is no fair comparison for what writes.

    What it does for each case: *opaque* authenticates a client by private_key_jwt, records the assertion's jti, reads
    the grant, stores an opaque access token and signs an RS256 ID token (by a grant of its own: client_credentials has
    no ID token). *jwt* signs an RS256 access token beside it, which it does not store. *introspection* authenticates a
    confidential client and reads the token; *userinfo* reads token and grant. The *code flow* reads and writes the
    session of a signed cookie, checks PKCE and consumes the code; *refresh* rotates at each use. Both bring an RS256
    ID token and a refresh token, as the service does. Discovery and keys are built for each request.
    """
    kind = storage if node.drivers else "memory"
    with folder_on_disk() as data, ExitStack() as stack:
        url, database = stack.enter_context(_postgresql()) if kind == "postgresql" else (str(data / "db.sqlite"), None)
        port, program = service.free_port(), shutil.which("node") or "node"
        command = (program, str(_SCRIPT), str(node.folder), str(node.drivers or ""), str(port), kind)
        url = url.replace("+psycopg", "")
        place = Place(
            data, port, data / "node.log", database, command=(*command, url), environment={"NODE_ENV": "production"}
        )
        with service.running(place) as (running, start):
            lines = place.log.read_text("utf-8").splitlines()
            made = json.loads(next(line for line in lines if line.startswith("{")))
            known = Known(
                issuer=f"http://{place.host}",
                host=place.host,
                opaque=Signer("opaque", "service-key", made["key"]),
                jwt=Signer("jwt", "service-key", made["key"]),
                client=made["basic"],
                visitor=Visitor(made["cookie"], authorization("app", SCOPE), made["basic"]),
                endpoints=NODE,
            )
            memory = running.rss()
            yield Installation(f"node, {kind}", place, running, known, _cases(known, place, pool, 50), start, memory)


def find_node() -> Node:
    """oidc-provider in the folder that OIDC_PROVIDER names, or in a cache folder, where npm installs what is missing.

    Raises NoNode.
    """
    if shutil.which("node") is None:
        raise NoNode("node is not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "identity-benchmarks"
    folder = Path(os.environ.get("OIDC_PROVIDER") or cache)
    if problem := _install(folder, PACKAGE):
        raise NoNode(problem)
    return Node(folder, _version(folder, PACKAGE), None if _install(cache, *DRIVERS) else cache)


def _install(folder: Path, *packages: str) -> str:
    """Let npm install these packages unless they are there; returns why that failed."""
    if all(_version(folder, one) for one in packages):
        return ""
    if shutil.which("npm") is None:
        return "npm is not installed"
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    there = not done.returncode and all(_version(folder, one) for one in packages)
    return "" if there else f"npm cannot install {' '.join(packages)}: {done.stderr[-300:].strip()}"


def _version(folder: Path, package: str) -> str:
    """The installed version of this package; empty if it is not there."""
    described = folder / "node_modules" / package.partition("@")[0] / "package.json"
    return str(json.loads(described.read_text("utf-8"))["version"]) if described.exists() else ""


@contextmanager
def placed(setup: Setup) -> Iterator[Place]:
    """An ini file and a new data folder, with a new PostgreSQL if that is the storage; deleted in the end."""
    with folder_on_disk() as folder, ExitStack() as stack:
        url, database = stack.enter_context(_postgresql()) if setup.storage == "postgresql" else (None, None)
        ini, port = folder / "benchmark.ini", service.free_port()
        service.write_ini(ini, setup, port=port, data=folder / "data", database_url=url)
        yield Place(ini, port, folder / "service.log", database, url)


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


def answers(case: Case, count: int, place: Place, pool: Executor, *, alone: bool = False) -> list[bytes]:
    """The bodies for so many requests of the case, after those of the case before unless ``alone``."""
    if case.before is not None and not alone:
        answers(case.before, count, place, pool)
    load = Load(place.address, case.take(count), case.expected, keeps=True)
    contents = pool.submit(drive, load).result(timeout=2 * _PATIENCE).contents
    case.answered(contents)
    return contents


def _cases(known: Known, place: Place, pool: Executor, shown: int) -> Mapping[str, Case]:
    tokens = [json.loads(body)["access_token"] for body in answers(requests.tokens_case(known), shown, place, pool)]
    return {case.name: case for case in requests.all_cases(known, tokens)}


def _store(setup: Setup, place: Place, known: Known, pool: Executor) -> None:
    """Fill the database with copies, once there is a token of each kind."""
    with service.running(place):
        answers(requests.tokens_case(known), 1, place, pool)
        answers(requests.all_cases(known, ())[-1], 1, place, pool)
    fill(place, setup.stored, expired=setup.expired)


@contextmanager
def _postgresql() -> Iterator[tuple[str, int]]:
    """A new database of a server of our own that waits for its disk as in production, and the server's process id."""
    from identity.testing.postgresql import PostgresqlServer, new_database

    # Not below our own folder: the server may run as another user, who cannot enter it.
    server = PostgresqlServer(Path(tempfile.gettempdir()) / f"identity-benchmark-{secrets.token_hex(4)}")
    try:
        yield new_database(server), server.process_id
    finally:
        server.close()
