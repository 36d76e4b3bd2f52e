"""A service with several workers, and programs that ask it without end."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from identity.testing.processes import family
from tests.house.served import ROOT, free_port

INI = """
[DEFAULT]
http_port = 0

[app:main]
paste.app_factory = tests.house.answering:main
word = {word}

[server:main]
paste.server_factory = identity.server:listen
{more}

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

LONG = 60.0


@dataclass
class Serving:
    """`identity serve` with an ini file of its own, in a folder."""

    folder: Path
    port: int
    words: tuple[str, ...]
    process: "subprocess.Popen[bytes]"
    #: Whatever was found running: those that outlive what started them have to go as well.
    known: list[Any] = field(default_factory=list)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=LONG)

    def ask(self) -> tuple[int, str]:
        """Which process answers, and its word."""
        connection = self.connect()
        try:
            return asked(connection)
        finally:
            connection.close()

    def write(self, *, word: str = "first", **settings: object) -> None:
        """Write the ini file."""
        write_ini(self.folder, word=word, **settings)

    def generation(self) -> Any:
        """The process that looks after the workers."""
        (found,) = wait_for(lambda: psutil.Process(self.process.pid).children(), lambda found: len(found) == 1)
        return found

    def workers(self, count: int = 2) -> list[int]:
        """Their processes."""
        found = wait_for(lambda: self.generation().children(), lambda found: len(found) == count)
        return sorted(one.pid for one in found)

    def all_processes(self) -> list[Any]:
        """Everything that was started."""
        found = family(self.process.pid)
        self.known += found
        return found

    def says(self, words: str, count: int = 1) -> None:
        """Wait until the log does, so often."""
        wait_for(lambda: self.log, lambda found: found.count(words) >= count)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


def write_ini(folder: Path, *, word: str = "first", **settings: object) -> None:
    own = {"listen": "127.0.0.1:%(http_port)s", **settings}
    more = "\n".join(f"{name} = {value}" for name, value in own.items() if value is not None)
    (folder / "service.ini").write_text(INI.format(word=word, more=more))


def start(
    folder: Path,
    *words: str,
    ini: Path | None = None,
    port: int | None = None,
    environment: Any = None,
    first: str = "",
    terminal: int = subprocess.DEVNULL,
    **settings: object,
) -> Serving:
    """Start it, with an ini file of its own unless one is named; the caller waits until it answers, and ends it.

    ``first`` is done by its process before everything else. ``terminal`` is its input.
    """
    port = port or free_port()
    if ini is None:
        write_ini(folder, **settings)
    program = [str(Path(sys.executable).with_name("identity")), "serve", "-c", str(ini or "service.ini"), *words]
    program.append(f"http_port={port}")
    if first:
        program = [sys.executable, "-c", f"import os, sys; {first}; os.execv(sys.argv[1], sys.argv[1:])", *program]
    with (folder / "log").open("ab") as output:
        process = subprocess.Popen(
            program,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=terminal,
            stdout=output,
            stderr=output,
        )
    return Serving(folder, port, words, process)


def end(serving: Serving) -> None:
    """Whatever a test has done to it, nothing is left."""
    serving.all_processes()
    for one in serving.known:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    serving.process.wait(LONG)
    psutil.wait_procs(serving.known, timeout=LONG)


def wait_for(look: Callable[[], Any], enough: Callable[[Any], bool], *told: object) -> Any:
    """What is found as soon as it is enough."""
    give_up_at = time.monotonic() + LONG
    found: Any = None
    while time.monotonic() < give_up_at:
        with suppress(psutil.NoSuchProcess, OSError):
            found = look()
            if enough(found):
                return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain; last found: {found!r} {told}")


def asked(connection: HTTPConnection) -> tuple[int, str]:
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200
    process, _, word = answer.read().decode().partition(" ")
    return int(process), word


class Asking(threading.Thread):
    """Asks on one connection, on another one when told to close it; tells whose answers were lost."""

    def __init__(self, serving: Serving, *, kept: bool) -> None:
        super().__init__(daemon=True)
        self._serving, self._kept = serving, kept
        self.enough = threading.Event()
        self.answers: list[tuple[int, str]] = []
        #: Of which process, and what happened.
        self.lost: list[tuple[int, str]] = []

    def run(self) -> None:
        connection, of = self._serving.connect(), 0
        while not self.enough.is_set():
            try:
                # A connection that was told to close is opened anew here.
                if connection.sock is None:
                    of = 0
                self.answers.append(asked(connection))
                of = self.answers[-1][0]
            except (OSError, HTTPException) as problem:
                self.lost.append((of, repr(problem)))
                connection.close()
            if not self._kept:
                connection.close()
        connection.close()

    def more(self, count: int = 20) -> None:
        """Wait until it has so many answers more."""
        wanted = len(self.answers) + count
        wait_for(lambda: len(self.answers), lambda found: found >= wanted, self.lost)


def under_load(serving: Serving, *, kept: bool, count: int = 6) -> Iterator[list[Asking]]:
    """So many ask until the caller goes on."""
    asking = [Asking(serving, kept=kept) for _ in range(count)]
    for one in asking:
        one.start()
    for one in asking:
        one.more()
    yield asking
    for one in asking:
        one.enough.set()
    for one in asking:
        one.join(LONG)


def refuses(port: int) -> bool:
    """True if nobody takes a connection there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def port_is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
