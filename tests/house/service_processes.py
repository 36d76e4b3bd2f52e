"""Runs the service like `pserve` and `make run`, in separate processes."""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEVELOPMENT = ROOT / "development.ini"
PRODUCTION = ROOT / "production.ini"


@dataclass
class ServiceProcess:
    """A running `pserve`."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    #: Whether signals go to the whole process group, as from a terminal.
    group: bool = False

    @property
    def output(self) -> str:
        return self.log.read_text()

    def get(self, path: str, host: str | None = None) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}")
        request.add_header("Host", host or f"localhost:{self.port}")
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            content: bytes = response.read()
        return content

    def status(self, path: str, host: str | None = None) -> int:
        """The status code of the response."""
        try:
            self.get(path, host)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code
        return 200

    def wait(self) -> "ServiceProcess":
        """The status code of the response, once the service responds or has ended."""
        while self.process.poll() is None:
            with suppress(OSError):
                self.get("/healthz")
                break
            time.sleep(0.05)
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            if self.group:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        return self.process.wait(60)


Pserve = Callable[..., ServiceProcess]


def cut_off() -> list[str]:
    """A command prefix that leaves only the loopback interface. Skips the test where that is impossible."""
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    ):
        reason = "the network cannot be cut off: that takes unshare and ip (Debian: apt-get install iproute2)."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return command


def free_port() -> int:
    """A port below the ephemeral range, so that nothing takes it before the service does."""
    while True:
        port = random.randrange(10_000, 32_000)  # noqa: S311 - no secret
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
