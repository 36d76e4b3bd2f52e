"""Machines simulated by network namespaces, on a switch in a separate namespace, invisible from outside."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from faults.database import FaultUnavailable

_SWITCH = "switch"


class NamespaceMachine:
    """A namespace with an address, and its processes."""

    def __init__(self, space: str, address: str, link: str, folder: Path) -> None:
        self.space, self.address, self.folder = space, address, folder
        self._link = link
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str], *, user: str | None = None, **environment: str) -> None:
        """Start a program there; it runs until it is killed."""
        prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"] if user else []
        with (self.folder / f"{Path(command[0]).name}.log").open("ab") as log:
            self._started.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", self.space, *prefix, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **environment},
                    cwd="/",
                    start_new_session=True,
                )
            )

    @property
    def is_running(self) -> bool:
        """True if any process runs there."""
        return bool(_command_output("ip", "netns", "pids", self.space).split())

    def kill(self) -> None:
        """Kill all its processes, like a power failure."""
        for _ in range(100):
            numbers = _command_output("ip", "netns", "pids", self.space).split()
            if not numbers:
                break
            for number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGKILL)
            time.sleep(0.05)
        for process in self._started:
            process.wait()
        self._started.clear()

    def disconnect(self) -> None:
        """Drop all traffic silently."""
        _run("ip", "-n", self.space, "link", "set", self._link, "down")

    def connect(self) -> None:
        """Inverse of ``disconnect``."""
        _run("ip", "-n", self.space, "link", "set", self._link, "up")


@contextmanager
def create_machines(names: Sequence[str], folder: Path) -> Iterator[Mapping[str, NamespaceMachine]]:
    """These machines, and one called ``switch`` between them. Raises FaultUnavailable."""
    prefix = f"idf{os.getpid()}"
    spaces = {name: f"{prefix}-{name}" for name in (_SWITCH, *names)}
    machines: dict[str, NamespaceMachine] = {}
    try:
        for space in spaces.values():
            _run("ip", "netns", "add", space)
            _run("ip", "-n", space, "link", "set", "lo", "up")
        switch = spaces[_SWITCH]
        _run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", switch, "addr", "add", "10.213.77.1/24", "dev", "bridge")
        _run("ip", "-n", switch, "link", "set", "bridge", "up")
        machines[_SWITCH] = _create_machine(_SWITCH, switch, "10.213.77.1", "bridge", folder)
        for number, name in enumerate(names, 11):
            space, address, port = spaces[name], f"10.213.77.{number}", f"port{number}"
            ends = ("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            _run(*ends)
            _run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
            _run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
            _run("ip", "-n", space, "link", "set", "eth0", "up")
            machines[name] = _create_machine(name, space, address, "eth0", folder)
        yield machines
    finally:
        for machine in machines.values():
            machine.kill()
        for space in spaces.values():
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


def _create_machine(name: str, space: str, address: str, link: str, folder: Path) -> NamespaceMachine:
    path = folder / name
    path.mkdir(mode=0o755)
    return NamespaceMachine(space, address, link, path)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise FaultUnavailable(f"{' '.join(command)}: {done.stderr.strip()}")


def _command_output(*command: str) -> str:
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout
