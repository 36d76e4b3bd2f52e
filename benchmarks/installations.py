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

from benchmarks import request_cases as requests
from benchmarks import service_process
from benchmarks.database_fill import fill_database
from benchmarks.load_generator import LoadSpec, run_load
from benchmarks.request_cases import (
    NODE_ENDPOINTS,
    SCOPE,
    AssertionSigner,
    RequestCase,
    RequestFixtures,
    SignedInVisitor,
    authorization_parameters,
)
from benchmarks.seed_data import create_seed_data
from benchmarks.service_process import Deployment, ServiceConfiguration, ServiceProcesses

#: The version that ``.ci/run`` installs.
PACKAGE = "oidc-provider@9.13.3"
#: Drivers of its storages: SQLite with a driver that npm has precompiled for all systems, and PostgreSQL.
DRIVERS = ("libsql@0.5.29", "pg@8.23.1")
_SCRIPT = Path(__file__).with_name("node_provider.mjs")
_NPM_TIMEOUT = 600.0


class NodejsMissing(Exception):
    """node-oidc-provider cannot run here."""


@dataclass(frozen=True)
class Installation:
    """A running side. ``start_cpu_seconds`` is the CPU time until the first response, ``memory_at_start`` the bytes
    after it.
    """

    name: str
    deployment: Deployment
    service: ServiceProcesses
    fixtures: RequestFixtures
    cases: Mapping[str, RequestCase]
    start_cpu_seconds: float = 0.0
    memory_at_start: int = 0


@contextmanager
def install_service(
    setup: ServiceConfiguration,
    pool: Executor,
    *,
    pending_sign_ins: int = 0,
    presented_tokens: int = 50,
    starts: int = 1,
    change: Callable[[Deployment], Deployment] = lambda deployment: deployment,
) -> Iterator[Installation]:
    """The service, with this many pending sign-ins; userinfo and introspection use ``presented_tokens`` tokens in turn.

    It is started ``starts`` times, and ``start`` is the median of their CPU times. ``change`` returns the deployment
    to start. Everything is deleted afterwards. Raises ServiceStartError, UnexpectedResponse, DiskTooSmall.
    """
    with create_deployment(setup) as deployment, ExitStack() as stack:
        known = create_seed_data(deployment.ini, deployment.host, pending_sign_ins)
        if setup.stored_tokens:
            _fill_database(setup, deployment, known, pool)
        deployment = change(deployment)
        spans = []
        for _ in range(starts - 1):
            with service_process.run_service(deployment) as (_, span):
                spans.append(span)
        running, span = stack.enter_context(service_process.run_service(deployment))
        start, memory = statistics.median([*spans, span]), running.resident_bytes()
        cases = _create_cases(known, deployment, pool, presented_tokens)
        yield Installation(setup.storage, deployment, running, known, cases, start, memory)


@dataclass(frozen=True)
class NodejsPackage:
    """The folder with oidc-provider and the drivers of its storages; ``drivers`` is None without them."""

    folder: Path
    version: str
    drivers: Path | None


@contextmanager
def install_node_provider(node: NodejsPackage, storage: str, pool: Executor) -> Iterator[Installation]:
    """node-oidc-provider in one process of Node.js, on the same kind of storage. Raises ServiceStartError,
    UnexpectedResponse.

    Its adapter is a table of JSON by key, as in the package's examples, on SQLite (write-ahead log, synchronous
    FULL) or on its own PostgreSQL server, whose CPU time counts; each write is one durable commit. Without the
    drivers everything is in memory, which is no fair comparison for writes.

    What it does for each case: *opaque* authenticates a client by private_key_jwt, records the assertion's jti,
    reads the grant, stores an opaque access token and signs an RS256 ID token (by a custom grant: client_credentials
    has no ID token). *jwt* additionally signs an RS256 access token, which it does not store. *introspection*
    authenticates a confidential client and reads the token; *userinfo* reads token and grant. The *code flow* reads
    and writes the session of a signed cookie, checks PKCE and consumes the code; *refresh* rotates at each use. Both
    return an RS256 ID token and a refresh token, as the service does. Discovery and keys are built for each request.
    """
    kind = storage if node.drivers else "memory"
    with temporary_folder_on_disk() as data, ExitStack() as stack:
        url, database = (
            stack.enter_context(_start_postgresql()) if kind == "postgresql" else (str(data / "db.sqlite"), None)
        )
        port, program = service_process.find_free_port(), shutil.which("node") or "node"
        command = (program, str(_SCRIPT), str(node.folder), str(node.drivers or ""), str(port), kind)
        url = url.replace("+psycopg", "")
        deployment = Deployment(
            data, port, data / "node.log", database, command=(*command, url), environment={"NODE_ENV": "production"}
        )
        with service_process.run_service(deployment) as (running, start):
            lines = deployment.log.read_text("utf-8").splitlines()
            created = json.loads(next(line for line in lines if line.startswith("{")))
            known = RequestFixtures(
                issuer=f"http://{deployment.host}",
                host=deployment.host,
                opaque=AssertionSigner("opaque", "service-key", created["key"]),
                jwt=AssertionSigner("jwt", "service-key", created["key"]),
                introspection_credentials=created["basic"],
                visitor=SignedInVisitor(created["cookie"], authorization_parameters("app", SCOPE), created["basic"]),
                endpoints=NODE_ENDPOINTS,
            )
            memory = running.resident_bytes()
            yield Installation(
                f"node, {kind}", deployment, running, known, _create_cases(known, deployment, pool, 50), start, memory
            )


def find_nodejs_package() -> NodejsPackage:
    """oidc-provider in the folder that OIDC_PROVIDER names, or in a cache folder, where npm installs what is missing.

    Raises NodejsMissing.
    """
    if shutil.which("node") is None:
        raise NodejsMissing("node is not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "identity-benchmarks"
    folder = Path(os.environ.get("OIDC_PROVIDER") or cache)
    if problem := _npm_install(folder, PACKAGE):
        raise NodejsMissing(problem)
    return NodejsPackage(folder, _version(folder, PACKAGE), None if _npm_install(cache, *DRIVERS) else cache)


def _npm_install(folder: Path, *packages: str) -> str:
    """Install these packages with npm unless they are installed; returns the reason of a failure."""
    if all(_version(folder, package) for package in packages):
        return ""
    if shutil.which("npm") is None:
        return "npm is not installed"
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    is_installed = not done.returncode and all(_version(folder, package) for package in packages)
    return "" if is_installed else f"npm cannot install {' '.join(packages)}: {done.stderr[-300:].strip()}"


def _version(folder: Path, package: str) -> str:
    """The installed version of this package; empty without one."""
    described = folder / "node_modules" / package.partition("@")[0] / "package.json"
    return str(json.loads(described.read_text("utf-8"))["version"]) if described.exists() else ""


@contextmanager
def create_deployment(setup: ServiceConfiguration) -> Iterator[Deployment]:
    """An ini file and a new data folder, with a new PostgreSQL server for that storage; deleted afterwards."""
    with temporary_folder_on_disk() as folder, ExitStack() as stack:
        url, database = stack.enter_context(_start_postgresql()) if setup.storage == "postgresql" else (None, None)
        ini, port = folder / "benchmark.ini", service_process.find_free_port()
        service_process.write_ini(ini, setup, port=port, data=folder / "data", database_url=url)
        yield Deployment(ini, port, folder / "service.log", database, url)


@contextmanager
def temporary_folder_on_disk() -> Iterator[Path]:
    """A new folder beside the data folder of ``make run``, on the same disk; deleted afterwards."""
    parent = service_process.ROOT / "var"
    parent.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"benchmark-{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def collect_responses(
    case: RequestCase, count: int, deployment: Deployment, pool: Executor, *, alone: bool = False
) -> list[bytes]:
    """The bodies of responses to this many requests of the case, after those of its source case unless ``alone``."""
    if case.source_case is not None and not alone:
        collect_responses(case.source_case, count, deployment, pool)
    load = LoadSpec(deployment.address, case.next_requests(count), case.expected, stores_responses=True)
    contents = pool.submit(run_load, load).result(timeout=2 * _NPM_TIMEOUT).bodies
    case.feed_responses(contents)
    return contents


def _create_cases(
    known: RequestFixtures, deployment: Deployment, pool: Executor, token_count: int
) -> Mapping[str, RequestCase]:
    tokens = [
        json.loads(body)["access_token"]
        for body in collect_responses(requests.create_token_case(known), token_count, deployment, pool)
    ]
    return {case.name: case for case in requests.create_cases(known, tokens)}


def _fill_database(setup: ServiceConfiguration, deployment: Deployment, known: RequestFixtures, pool: Executor) -> None:
    """Fill the database with copies, once there is a token of each kind."""
    with service_process.run_service(deployment):
        collect_responses(requests.create_token_case(known), 1, deployment, pool)
        collect_responses(requests.create_cases(known, ())[-1], 1, deployment, pool)
    fill_database(deployment, setup.stored_tokens, expired=setup.expired)


@contextmanager
def _start_postgresql() -> Iterator[tuple[str, int]]:
    """A new database on our own server, which waits for its disk as in production, and the server's process id."""
    from identity.testing.postgresql import PostgresqlServer, new_database

    # Not below our own folder: the server may run as another user without access to it.
    server = PostgresqlServer(Path(tempfile.gettempdir()) / f"identity-benchmark-{secrets.token_hex(4)}")
    try:
        yield new_database(server), server.process_id
    finally:
        server.close()
