"""Fixtures: the `identity` command in this process, on a bootstrapped database, and a service that listens."""

import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from identity.cli import main
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.storage.backend import Storage

ROOT = Path(__file__).resolve().parents[2]
INI = str(ROOT / "development.ini")


@dataclass(frozen=True)
class CompletedCommand:
    """Output and exit status of a command."""

    status: int
    out: str
    err: str


Run = Callable[..., CompletedCommand]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command with these arguments."""

    def run(*arguments: object) -> CompletedCommand:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return CompletedCommand(status, captured.out, captured.err)

    return run


@pytest.fixture
def ini() -> str:
    """The name of the ini file."""
    return INI


@pytest.fixture(scope="session")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder as the first start leaves it. Tests use copies."""
    data = tmp_path_factory.mktemp("bootstrapped") / "data"
    options = ["--service-user", "example", "--key-out", f"{data}/key.json", "--client-out", f"{data}/client.json"]
    assert main(["bootstrap", "-c", INI, f"data={data}", *options]) == 0
    return data


@pytest.fixture
def data(bootstrapped: Path, tmp_path: Path) -> Path:
    """A copy of the bootstrapped data folder."""
    return Path(shutil.copytree(bootstrapped, tmp_path / "data"))


@pytest.fixture
def on_data(run: Run, data: Path) -> Run:
    """Runs a command with the data folder ``data``."""
    return lambda command, *arguments: run(command, "-c", INI, f"data={data}", *arguments)


@pytest.fixture
def stored(data: Path) -> Iterator[Storage]:
    """Reads from the storage in ``data``."""
    backend = SqlBackend(SqlPluginSettings(url=f"sqlite:///{data}/identity.sqlite"))
    with backend.read_session() as storage:
        yield storage
    backend.close()


@dataclass(frozen=True)
class CliService:
    """A service that listens on a port, with an example key file."""

    port: int
    data: Path

    @property
    def issuer(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def key_file(self) -> Path:
        return self.data / "example-service-user.json"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliService]:
    """development.ini, served on a free port."""
    folder = tmp_path_factory.mktemp("service")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        cli_service = CliService(free.getsockname()[1], folder / "data")
    options = [
        sys.executable,
        "-m",
        "pyramid.scripts.pserve",
        INI,
        f"http_port={cli_service.port}",
        f"data={cli_service.data}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(options, stdout=log, stderr=log)
    try:
        _wait_for(cli_service, process, folder / "log")
        yield cli_service
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_for(service: CliService, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{service.issuer}/healthz", timeout=30).close()  # noqa: S310
        except OSError:
            time.sleep(0.05)
        else:
            return
