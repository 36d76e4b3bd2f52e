"""Real server processes on the loopback interface, each with the settings that the service needs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Seconds after which waiting fails; long enough for a busy machine.
WAIT = 60
MODULE = "tests.server_conformance.conformance_application"

#: The seconds for which an idle connection is kept, and those that a stopping server gives running requests.
KEEP_ALIVE, GRACE = 5, 30
#: The longest request line and header field that a server must accept.
LONGEST_LINE = 16 << 10


@dataclass(frozen=True)
class ServerKind:
    """A web server, which is a column of the table: how to start it, and what it supports.

    ``command`` takes the port and the application's name.
    """

    name: str
    #: The test id.
    id: str
    modules: tuple[str, ...]
    command: Callable[[int, str], list[str]]
    application: str = f"{MODULE}:application"
    #: Whether a parent process replaces workers, and reloads the application on SIGHUP.
    supervised: bool = True


def _gunicorn(*more: str) -> Callable[[int, str], list[str]]:
    def command(port: int, application: str) -> list[str]:
        settings = {
            "--bind": f"127.0.0.1:{port}",
            "--workers": "1",
            "--keep-alive": str(KEEP_ALIVE),
            "--graceful-timeout": str(GRACE),
            "--timeout": "20",
            "--limit-request-line": str(LONGEST_LINE),
            "--limit-request-field_size": str(LONGEST_LINE),
            # Only the application decides which forwarding headers count.
            "--forwarded-allow-ips": "",
            "--worker-tmp-dir": "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp",  # noqa: S108
        }
        options = [option for pair in settings.items() for option in pair]
        return ["gunicorn", *options, "--no-control-socket", *more, application]

    return command


def _uvicorn(port: int, application: str) -> list[str]:
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--loop",
        "uvloop",
        "--http",
        "httptools",
        "--no-proxy-headers",
    ]
    times = ["--timeout-keep-alive", str(KEEP_ALIVE), "--timeout-graceful-shutdown", str(GRACE)]
    return ["uvicorn", *options, *times, "--no-server-header", "--no-access-log", application]


def _waitress(port: int, application: str) -> list[str]:
    return ["waitress", f"--listen=127.0.0.1:{port}", "--threads=4", "--ident=", application]


SERVERS = {
    kind.name: kind
    for kind in (
        # The settings of `identity serve`.
        ServerKind(
            "identity serve",
            "identity-serve",
            ("gunicorn", "identity.serving.asgi_worker"),
            _gunicorn("-k", "identity.serving.asgi_worker.AsgiWorker", "--http-parser", "python"),
        ),
        ServerKind(
            "identity serve, C parser",
            "identity-serve-c",
            ("gunicorn", "gunicorn_h1c", "identity.serving.asgi_worker"),
            _gunicorn("-k", "identity.serving.asgi_worker.AsgiWorker", "--http-parser", "fast"),
        ),
        ServerKind("gunicorn asgi", "gunicorn-asgi", ("gunicorn",), _gunicorn("-k", "asgi", "--http-parser", "python")),
        ServerKind(
            "gunicorn asgi, C parser",
            "gunicorn-asgi-c",
            ("gunicorn", "gunicorn_h1c"),
            _gunicorn("-k", "asgi", "--http-parser", "fast"),
        ),
        ServerKind(
            "gunicorn, uvicorn's worker",
            "gunicorn-uvicorn",
            ("gunicorn", "uvicorn_worker", "uvloop", "httptools"),
            _gunicorn("-k", "uvicorn_worker.UvicornWorker"),
        ),
        ServerKind("uvicorn", "uvicorn", ("uvicorn", "uvloop", "httptools"), _uvicorn, supervised=False),
        ServerKind("waitress", "waitress", ("waitress",), _waitress, f"{MODULE}:wsgi_application", supervised=False),
    )
}
#: Always tested. --thorough adds its other HTTP parser, --servers the other servers.
QUICK = "identity serve"


@dataclass
class ServerProcess:
    """A running server."""

    kind: ServerKind
    port: int
    process: subprocess.Popen[bytes]
    log: Path
    release: Path
    _reserved: list[socket.socket] = field(default_factory=list)

    def connect(self) -> socket.socket:
        """A connection that sends small pieces at once (TCP_NODELAY)."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def say(self, *pieces: bytes, before: bytes = b"", timeout: float | None = None) -> bytes:
        """Send the pieces, and return the response bytes once the server has closed the connection.

        ``before`` is a request to send first; its response is left out.
        """
        received = b""
        with self.connect() as connection:
            connection.settimeout(timeout or WAIT)
            if before:
                connection.sendall(before)
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += connection.recv(1)
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                while length:
                    length -= len(connection.recv(length))
            # The server may refuse and close the connection while the request is still being sent.
            with suppress(ConnectionError):
                for piece in pieces:
                    connection.sendall(piece)
            with suppress(ConnectionError):
                while piece := connection.recv(1 << 16):
                    received += piece
        return received

    def ask(self, path: str = "/") -> dict[str, Any]:
        """The application's response on a new connection."""
        answer = self.say(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        found: dict[str, Any] = json.loads(body)
        return found

    def answers(self) -> bool:
        """True if the server responds on a new connection."""
        try:
            return bool(self.ask()["pid"])
        except (OSError, AssertionError, ValueError):
            return False

    def worker(self) -> psutil.Process:
        """The ID of the process that responds."""
        return psutil.Process(self.ask()["pid"])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def output(self) -> str:
        return self.log.read_text(errors="replace")


def read_head(connection: socket.socket) -> bytes:
    """Read up to the first empty line, byte by byte, so that the body stays in the socket."""
    received = b""
    while not received.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        assert piece, received
        received += piece
    return received


def wait_until(holds: Callable[[], bool], description: str) -> None:
    """Wait until the condition is true; fail after WAIT seconds."""
    give_up_at = time.monotonic() + WAIT
    while not holds():
        if time.monotonic() > give_up_at:
            pytest.fail(f"in {WAIT} seconds never: {description}", pytrace=False)
        time.sleep(0.05)


def free_port() -> tuple[int, socket.socket]:
    """A free port, and a socket that reserves it: bound but not listening, so that a server can listen there."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation.getsockname()[1], reservation


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def running(kind: ServerKind, folder: Path, *more: str) -> Iterator[ServerProcess]:
    """Run the server during the block; ``more`` are further arguments of its command."""
    if missing := [name for name in kind.modules if not _is_installed(name)]:
        pytest.skip(f"a server is not installed: {', '.join(missing)}")
    port, reservation = free_port()
    release = folder / "release"
    release.write_text("first")
    command = kind.command(port, kind.application)
    command[-1:-1] = more
    environ = {**os.environ, "CONFORMANCE_RELEASE": str(release), "PYTHONPATH": str(ROOT)}
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdout=output,
            stderr=output,
            env=environ,
            cwd=ROOT,
            start_new_session=True,
        )
    server = ServerProcess(kind, port, process, log, release)
    try:
        wait_until(lambda: process.poll() is not None or server.answers(), f"{kind.name} answers")
        assert process.poll() is None, server.output()
        yield server
    finally:
        end(process)
        reservation.close()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its descendants."""
    family = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(WAIT)
    for item in family:
        with suppress(psutil.NoSuchProcess):
            item.kill()
    psutil.wait_procs(family, WAIT)
