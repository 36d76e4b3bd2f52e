"""Several processes of one service, each on its own port, as behind a load balancer."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchmarks.service_process import ROOT, ServiceConfiguration, find_free_port, write_ini
from faults.database import FaultDatabase
from identity.crypto.sealing import create_master_key_file

MASTER_KEY_FILE = "master.key"
#: The command `identity` of this checkout.
PROGRAM = (sys.executable, "-c", "from identity.cli import main; raise SystemExit(main())")

_START_TIMEOUT = 90.0
_STOP_TIMEOUT = 20.0
_NOT_SERVING_ERRORS = (OSError, HTTPException)

#: Codes outlive the faults, so that unused ones can be redeemed at the end.
SETTINGS = {"identity.authorization_code_lifetime": "10m"}


class NodeStartError(Exception):
    pass


class ServiceNode:
    """An `identity serve` process, started and stopped as often as a fault requires."""

    def __init__(self, ini: Path, port: int, host: str, environment: Mapping[str, str], workers: int) -> None:
        self.ini, self.port = ini, port
        self._worker_count = workers
        self._host = host
        self._extra_environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self.log = ini.with_suffix(".log")

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of all its programs."""
        return {**os.environ, **self._extra_environment}

    def start(self) -> None:
        """Start it without waiting."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*PROGRAM, "serve", "-c", str(self.ini)],
                cwd=ROOT,
                env={**self.environment, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def workers(self) -> Sequence[psutil.Process]:
        """The processes that serve requests."""
        assert self._process is not None  # noqa: S101 - it was started
        return psutil.Process(self._process.pid).children()

    def wait_for_workers(self, *, excluded: Sequence[psutil.Process] = ()) -> None:
        """Wait until the configured number of workers runs, and none of these. Raises NodeStartError."""
        give_up_at = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < give_up_at:
            workers = self.workers
            if len(workers) == self._worker_count and not set(workers) & set(excluded):
                self.wait_until_serving()
                return
            time.sleep(0.02)
        raise NodeStartError("no other workers were started")

    def run_command(self, *arguments: str) -> str:
        """Output of the command `identity` in its folder, with its clock. Raises AssertionError if it fails."""
        command = [*PROGRAM, *arguments, "-c", str(self.ini)]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=self.environment,
            timeout=120,
        )
        if done.returncode:
            raise AssertionError(f"identity {' '.join(arguments)} has failed: {done.stdout}{done.stderr}")
        return done.stdout

    def send_signal(self, number: int) -> None:
        """Send it a signal without waiting."""
        assert self._process is not None  # noqa: S101 - it was started
        self._process.send_signal(number)

    def wait_until_serving(self) -> None:
        """Wait until it responds. Raises NodeStartError."""
        give_up_at = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < give_up_at and self.is_alive:
            with (
                closing(HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection,
                suppress(*_NOT_SERVING_ERRORS),
            ):
                connection.request("GET", "/healthz", headers={"Host": self._host})
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.02)
        raise NodeStartError(f"a node did not start. It said:\n{self.log.read_text('utf-8', 'replace')[-2000:]}")

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it and its workers."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def terminate(self) -> None:
        """Terminate it, and wait until it has ended."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait(self) -> int | None:
        """Exit status of a process that ends by itself; None if it still runs."""
        assert self._process is not None  # noqa: S101 - it was started
        try:
            return self._process.wait(_START_TIMEOUT)
        except subprocess.TimeoutExpired:
            return None


class ServiceNodes(Sequence[ServiceNode]):
    """All nodes of one service."""

    def __init__(self, nodes: Sequence[ServiceNode], host: str) -> None:
        self._nodes = nodes
        self.host = host

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> ServiceNode:  # type: ignore[override]
        return self._nodes[number]

    @property
    def ports(self) -> Sequence[int]:
        """The ports they listen on."""
        return [node.port for node in self._nodes]

    def start(self) -> float:
        """Start all and wait until all serve; returns the seconds that took. Raises NodeStartError."""
        began = time.monotonic()
        for node in self._nodes:
            node.start()
        self.wait_until_serving()
        return time.monotonic() - began

    def wait_until_serving(self) -> None:
        """Wait until all respond. Raises NodeStartError."""
        for node in self._nodes:
            node.wait_until_serving()


@contextmanager
def create_nodes(
    folder: Path, database: FaultDatabase, number: int, environment: Mapping[str, str], workers: int = 1
) -> Iterator[ServiceNodes]:
    """Nodes of a service with this many workers each, killed afterwards."""
    first = find_free_port()
    key = folder / MASTER_KEY_FILE
    create_master_key_file(key)
    settings = {
        **SETTINGS,
        **database.settings,
        "identity.issuer_url": f"http://localhost:{first}",
        # As in production: missing files are not created.
        "identity.master_keys": f"1:{key}",
    }
    nodes = []
    for at, port in enumerate([first, *(find_free_port() for _ in range(number - 1))]):
        ini = folder / f"node-{port}.ini"
        write_ini(
            ini,
            ServiceConfiguration(settings=tuple(settings.items()), server=(("workers", str(workers)),)),
            port=port,
            data=folder / "data",
            database_url=database.url_for_node(at),
        )
        nodes.append(ServiceNode(ini, port, f"localhost:{first}", environment, workers))
    try:
        yield ServiceNodes(nodes, f"localhost:{first}")
    finally:
        for node in nodes:
            node.kill()


def exit_on_sigterm() -> None:
    """End child processes on SIGTERM, as on Ctrl-C: they would run forever."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
