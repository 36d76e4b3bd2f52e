"""The service in its own processes, started by ``identity serve``: settings, CPU time and memory."""

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
from pathlib import Path

import psutil  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = (sys.executable, "-c", "from identity.cli import main; raise SystemExit(main())")
DISCOVERY = "/.well-known/openid-configuration"
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 10.0
#: Below the range of ephemeral ports, so that no outgoing connection takes one first.
_PORTS = range(20_000, 32_000)


class ServiceStartError(Exception):
    """The service did not start, or ended by itself."""


@dataclass(frozen=True)
class ServiceConfiguration:
    """The measured configuration. ``settings`` are added to development.ini's ``[app:main]``.

    ``stored_tokens`` tokens are in the database before the first request; with ``expired`` they have expired.
    ``server`` holds gunicorn settings.
    """

    storage: str = "sqlite"
    settings: tuple[tuple[str, str], ...] = ()
    stored_tokens: int = 0
    expired: bool = False
    server: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Deployment:
    """A folder in which a service runs. ``database`` is the process id of its PostgreSQL server, ``command`` what
    starts it.
    """

    ini: Path
    port: int
    log: Path
    database: int | None = None
    database_url: str | None = field(default=None, repr=False)
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    start_limit: float = _START_TIMEOUT

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"


class ServiceProcesses:
    """A running service, and the main process of its own database server, if any."""

    def __init__(self, process: psutil.Popen, database: int | None = None) -> None:
        self._process = process
        self._database = None if database is None else psutil.Process(database)

    def cpu_seconds(self, *, database: bool = True) -> float:
        """CPU seconds, user and system, of all processes so far, including the database's."""
        processes = self.list_processes()
        if database and self._database is not None:
            processes += [self._database, *self._database.children(recursive=True)]
        return sum(_cpu_seconds(process) for process in processes)

    def resident_bytes(self) -> int:
        """Resident memory of all processes in bytes."""
        return sum(process.memory_info().rss for process in self.list_processes())

    def list_processes(self) -> list[psutil.Process]:
        """The main process and its descendants."""
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def list_workers(self) -> list[psutil.Process]:
        """The processes without children, which serve requests."""
        return [process for process in self.list_processes() if not process.children()]

    def stop(self) -> None:
        """Stop all processes, after some seconds by SIGKILL."""
        processes = self.list_processes()
        with suppress(psutil.NoSuchProcess):
            self._process.send_signal(signal.SIGTERM)
        _, stubborn = psutil.wait_procs(processes, timeout=_STOP_TIMEOUT)
        for process in stubborn:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()


@contextmanager
def run_service(deployment: Deployment) -> Iterator[tuple[ServiceProcesses, float]]:
    """The service, and the CPU seconds until its first response; stopped at the end of the block. Raises
    ServiceStartError.
    """
    added = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    with deployment.log.open("ab") as log:
        process = psutil.Popen(
            deployment.command or [*PROGRAM, "serve", "-c", str(deployment.ini)],
            cwd=ROOT,
            env={**os.environ, **added, **deployment.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    service = ServiceProcesses(process, deployment.database)
    try:
        _wait_for_answer(deployment, process)
        yield service, service.cpu_seconds(database=False)
    finally:
        service.stop()


def find_free_port() -> int:
    """A free loopback port outside the ephemeral range. Raises ServiceStartError."""
    for port in random.sample(_PORTS, 100):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise ServiceStartError("there is no free port")


def write_ini(target: Path, setup: ServiceConfiguration, *, port: int, data: Path, database_url: str | None) -> None:
    """Write development.ini with other addresses and settings, and with production's server and logging."""
    ini = RawConfigParser()
    ini.optionxform = str  # type: ignore[assignment, method-assign]
    ini.read(ROOT / "development.ini", "utf-8")
    ini["DEFAULT"]["http_port"] = str(port)
    ini["DEFAULT"]["data"] = str(data)
    ini["server:main"] = {"use": "egg:gunicorn#main", "bind": f"127.0.0.1:{port}", **dict(setup.server)}
    ini["logger_root"]["level"] = "ERROR"
    ini["logger_requests"]["level"] = "WARNING"
    for name, value in setup.settings:
        ini["app:main"][name] = value
    if database_url is not None:
        ini["app:main"]["identity.plugin.sql.url"] = database_url.replace("%", "%%")
    with target.open("w", encoding="utf-8") as file:
        ini.write(file)


def _wait_for_answer(deployment: Deployment, process: psutil.Popen) -> None:
    give_up_at = time.monotonic() + deployment.start_limit
    request = f"GET {DISCOVERY} HTTP/1.1\r\nHost: {deployment.host}\r\nConnection: close\r\n\r\n".encode()
    while time.monotonic() < give_up_at and process.poll() is None:
        with (
            suppress(OSError),
            socket.create_connection(deployment.address, timeout=deployment.start_limit) as connection,
        ):
            connection.sendall(request)
            if connection.recv(65536).startswith(b"HTTP/1.1 200 "):
                return
        time.sleep(0.005)
    raise ServiceStartError(
        f"No answer at {DISCOVERY}. Its output:\n{deployment.log.read_text('utf-8', 'replace')[-2000:]}"
    )


def _cpu_seconds(process: psutil.Process) -> float:
    """CPU seconds of a process and of its children that have ended.

    /proc counts in hundredths of a second; on Linux the process's clock (clock_getcpuclockid) is exact.
    """
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    cpu_seconds: float = times.user + times.system
    if sys.platform.startswith("linux"):
        with suppress(OSError):
            cpu_seconds = time.clock_gettime((~process.pid << 3) | 2)
    ended: float = times.children_user + times.children_system
    return cpu_seconds + ended
