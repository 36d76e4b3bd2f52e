"""The service in processes of its own, under one web server or another: started, watched, ended."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from configparser import RawConfigParser
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchmarks import INI_VARIABLE, hello

ROOT = Path(__file__).resolve().parent.parent
SERVERS = ("waitress", "gunicorn", "granian")
DISCOVERY = "/.well-known/openid-configuration"
_START_LIMIT = 60.0
_STOP_LIMIT = 10.0
#: Below those that Linux and others give to whoever asks for any.
_PORTS = range(20_000, 32_000)


class NotServing(Exception):
    """The service did not start, or ended by itself."""


@dataclass(frozen=True)
class Cpu:
    """CPU seconds of all threads of all processes of the service."""

    user: float
    system: float
    exact: float

    def since(self, earlier: "Cpu") -> "Cpu":
        """What was spent in between."""
        return Cpu(self.user - earlier.user, self.system - earlier.system, self.exact - earlier.exact)


@dataclass(frozen=True)
class Setup:
    """What is measured: a web server, a storage, how many threads answer, and of which checkout the code is.

    ``settings`` are those of the ini file besides development.ini's. Each fsync takes ``slow_disk`` milliseconds more.
    So many tokens are ``stored`` before the service is asked, and may have ``expired``. So many ``workers`` answer; 0
    is one process without a supervisor.
    """

    server: str = "waitress"
    storage: str = "sqlite"
    threads: int = 1
    checkout: Path = ROOT
    settings: tuple[tuple[str, str], ...] = ()
    slow_disk: float = 0.0
    stored: int = 0
    expired: bool = False
    workers: int = 0

    @property
    def title(self) -> str:
        """For people."""
        workers = f", workers={self.workers}" if self.workers else ""
        told = f"{self.server}, threads={self.threads}{workers}, {self.storage}"
        return told if self.checkout == ROOT else f"{told}, {self.checkout}"


@dataclass(frozen=True)
class Place:
    """Where a service is to run: its ini file and its port.

    ``database`` is the id of the process that the database began with, if it has its own; ``environment`` is what the
    service finds there besides ours.
    """

    setup: Setup
    ini: Path
    port: int
    log: Path
    database: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    database_url: str | None = field(default=None, repr=False)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self.port

    @property
    def host(self) -> str:
        """The Host header under which it answers."""
        return f"localhost:{self.port}"


class Service:
    """A running service, and the process that its database began with, if there is one."""

    def __init__(self, process: psutil.Popen, database: int | None = None) -> None:
        self._process = process
        self._database = None if database is None else psutil.Process(database)

    def cpu(self) -> Cpu:
        """What it and its database have used so far."""
        processes = self._processes()
        if self._database is not None:
            processes += [self._database, *self._database.children(recursive=True)]
        return _used(processes)

    def cpu_alone(self) -> Cpu:
        """What it has used so far, without its database."""
        return _used(self._processes())

    def rss(self) -> int:
        """Its resident memory in bytes, over all its processes."""
        return sum(process.memory_info().rss for process in self._processes())

    def workers(self) -> list[psutil.Process]:
        """Those that a supervisor has."""
        return [one for generation in self._process.children() for one in generation.children()]

    def alive(self) -> bool:
        """True until it ends."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it and whatever it started; by force if it does not hurry."""
        processes = self._processes()
        with suppress(psutil.NoSuchProcess):
            self._process.send_signal(signal.SIGTERM)
        _, stubborn = psutil.wait_procs(processes, timeout=_STOP_LIMIT)
        for process in stubborn:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


@contextmanager
def running(place: Place, *, serves_hello: bool = False) -> Iterator[tuple[Service, float]]:
    """The service, and the CPU seconds that it took until its first answer; it is ended with the block."""
    ours = {INI_VARIABLE: str(place.ini), "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(place.setup.checkout)}
    # What was compiled at one start is there at the next, as it is where the service was installed.
    ours["PYTHONDONTWRITEBYTECODE"] = ""
    with place.log.open("ab") as log:
        process = psutil.Popen(
            _command(place, serves_hello=serves_hello),
            cwd=place.setup.checkout,
            env={**os.environ, **place.environment, **ours},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    service = Service(process, place.database)
    try:
        _wait_for_answer(place, service, hello.PATH if serves_hello else DISCOVERY)
        yield service, service.cpu_alone().exact
    finally:
        service.stop()


def is_installed(server: str) -> bool:
    """True if the web server can be used."""
    return find_spec(server) is not None


def free_port() -> int:
    """A loopback port that nobody listens on, and that the system gives to nobody who asks for any.

    So nobody comes before whoever is to listen there.
    """
    for port in random.sample(_PORTS, 100):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise NotServing("there is no free port")


def write_ini(target: Path, setup: Setup, *, port: int, data: Path, database_url: str | None) -> None:
    """Copy the checkout's development.ini with another port, data folder and, if given, database, and the settings."""
    ini = RawConfigParser()
    ini.optionxform = str  # type: ignore[assignment, method-assign]
    ini.read(setup.checkout / "development.ini", "utf-8")
    ini["DEFAULT"]["http_port"] = str(port)
    ini["DEFAULT"]["data"] = str(data)
    ini["server:main"]["threads"] = str(setup.threads)
    # Waitress tells on the warning level about each request that had to wait for a thread.
    ini["logger_root"]["level"] = "ERROR"
    # As in production: a line for each request is for a first look.
    ini["logger_requests"]["level"] = "WARNING"
    for name, value in setup.settings:
        ini["app:main"][name] = value
    if database_url is not None:
        ini["app:main"]["identity.plugin.sql.url"] = database_url.replace("%", "%%")
    with target.open("w", encoding="utf-8") as file:
        ini.write(file)


def write_hello_ini(target: Path, service_ini: Path, port: int) -> None:
    """The same web server settings around the smallest application."""
    ini = RawConfigParser()
    ini.optionxform = str  # type: ignore[assignment, method-assign]
    ini.read(service_ini, "utf-8")
    ini["DEFAULT"]["http_port"] = str(port)
    ini.remove_section("app:main")
    ini["app:main"] = {"paste.app_factory": "benchmarks.hello:main"}
    with target.open("w", encoding="utf-8") as file:
        ini.write(file)


def _command(place: Place, *, serves_hello: bool) -> list[str]:
    python = [sys.executable, "-m"]
    application = "benchmarks.hello:application" if serves_hello else "benchmarks.wsgi:application"
    host, port = place.address
    match place.setup.server:
        case "waitress" if not place.setup.workers:
            return [*python, "pyramid.scripts.pserve", str(place.ini)]
        case "gunicorn":
            kind = ["--worker-class", "sync"]
            if place.setup.threads > 1:
                kind = ["--worker-class", "gthread", "--threads", str(place.setup.threads), "--keep-alive", "30"]
            workers = ["--workers", str(place.setup.workers or 1)]
            return [*python, "gunicorn", "--bind", f"{host}:{port}", *workers, *kind, application]
        case "waitress" | "granian":
            # Not the script `identity`, which would not find the smallest application.
            program = [sys.executable, "-c", "from identity.cli import main; raise SystemExit(main())"]
            workers = ["--workers", str(place.setup.workers)] if place.setup.workers else []
            return [*program, "serve", "-c", str(place.ini), "--server", place.setup.server, *workers]
    raise ValueError(place.setup.server)


def _wait_for_answer(place: Place, service: Service, path: str) -> None:
    give_up_at = time.monotonic() + _START_LIMIT
    request = f"GET {path} HTTP/1.1\r\nHost: {place.host}\r\nConnection: close\r\n\r\n".encode()
    while time.monotonic() < give_up_at:
        if not service.alive():
            break
        with suppress(OSError), socket.create_connection(place.address, timeout=5) as connection:
            connection.sendall(request)
            if connection.recv(65536).startswith(b"HTTP/1.1 200 "):
                return
        time.sleep(0.005)
    said = place.log.read_text("utf-8", "replace")[-2000:]
    raise NotServing(f"{place.setup.server} did not serve {path}. It said:\n{said}")


def _used(processes: Sequence[psutil.Process]) -> Cpu:
    """What these have used, and those that they have outlived; of the latter hundredths of a second are known."""
    user = system = exact = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times, known = process.cpu_times(), _exact(process.pid)
            user += times.user + times.children_user
            system += times.system + times.children_system
            ended = times.children_user + times.children_system
            exact += ended + (times.user + times.system if known is None else known)
    return Cpu(user, system, exact)


def _exact(pid: int) -> float | None:
    """The process's CPU clock in nanoseconds' resolution, where the system lends it (clock_getcpuclockid); else None.

    The times in /proc come in hundredths of a second.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None
