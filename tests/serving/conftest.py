"""`identity serve` in separate processes on loopback, with a minimal application."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.house.service_processes import ROOT, free_port
from tests.process_tree import list_process_tree

LONG = 300.0
PROGRAM = str(Path(sys.executable).with_name("identity"))

INI = """
[DEFAULT]
http_port = 0

[app:main]
paste.app_factory = tests.serving.minimal_application:main
identity.data = {folder}
greeting = {greeting}
single = {single}

[server:main]
use = egg:gunicorn#main
{server}

[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys = lines
[logger_root]
level = INFO
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
formatter = lines
[formatter_lines]
format = %(name)s %(levelname)s: %(message)s
"""


@dataclass
class ServeProcess:
    """A running `identity serve`."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=LONG)

    def ask(self, path: str = "/") -> str:
        connection = self.connect()
        try:
            connection.request("POST", path, body=b"x" * 100)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def workers(self, count: int = 2) -> list[int]:
        found: list[Any] = wait_for(
            lambda: psutil.Process(self.process.pid).children(), lambda found: len(found) == count
        )
        return sorted(item.pid for item in found)

    def says(self, text: str, count: int = 1) -> None:
        wait_for(lambda: self.log, lambda found: found.count(text) >= count)

    def write(self, *, greeting: str = "first", code: str = "one", single: str = "", **server: object) -> None:
        """Write the ini file and the code."""
        server_settings = {"bind": "127.0.0.1:%(http_port)s", "workers": 2, **server}
        lines = "\n".join(f"{name} = {value}" for name, value in server_settings.items() if value is not None)
        (self.folder / "service.ini").write_text(
            INI.format(folder=self.folder / "data", greeting=greeting, single=single, server=lines)
        )
        # The length must change: Python compares size and whole seconds with those of the compiled file.
        (self.folder / "code_that_changes.py").write_text(f"CODE = {code!r}\n")


def wait_for(look: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    """Call ``look`` until ``enough`` accepts its result, which is returned."""
    give_up_at = time.monotonic() + LONG
    found: Any = None
    while time.monotonic() < give_up_at:
        with suppress(psutil.NoSuchProcess, OSError):
            found = look()
            if enough(found):
                return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain; last found: {found!r}")


Start = Callable[..., ServeProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `identity serve`; returns once all workers answer, unless ``waits`` is False."""
    started: list[ServeProcess] = []

    def start(
        *, waits: bool = True, port: int | None = None, launcher: tuple[str, ...] = (), environment: Any = None,
        **settings: Any,
    ) -> ServeProcess:  # fmt: skip
        service = ServeProcess(tmp_path, port or free_port(), None)  # type: ignore[arg-type]
        service.write(**settings)
        (tmp_path / "data").mkdir(exist_ok=True)
        with (tmp_path / "log").open("ab") as output:
            service.process = subprocess.Popen(
                [*launcher, PROGRAM, "serve", "-c", "service.ini", f"http_port={service.port}"],
                cwd=tmp_path,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{ROOT}:{tmp_path}",
                    "PYTHONDONTWRITEBYTECODE": "1",
                    **(environment or {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        started.append(service)
        if waits:
            service.says("Control socket listening")
        return service

    yield start
    for serve_process in started:
        processes = list_process_tree(serve_process.process.pid)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        serve_process.process.wait(LONG)
