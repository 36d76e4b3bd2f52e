"""The process tree, while its processes may end at any moment."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil  # type: ignore[import-untyped]
import pytest

from tests.process_tree import list_process_tree, signal_process_tree

CHILD = "import sys; print(flush=True); sys.stdin.read()"
PARENT = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {CHILD!r}]); child.wait()"


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a child process."""
    program = [sys.executable, "-c", PARENT]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_signal_reaches_all_of_a_family(parent: "subprocess.Popen[bytes]") -> None:
    processes = list_process_tree(parent.pid)
    assert [process.ppid() == parent.pid for process in processes] == [False, True]
    signal_process_tree(parent.pid, signal.SIGKILL)
    parent.wait()
    assert psutil.wait_procs(processes)[1] == []


def test_ended_process_is_skipped(parent: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch) -> None:
    first, child = list_process_tree(parent.pid)
    signal_process_tree(parent.pid, signal.SIGKILL)
    parent.wait()
    psutil.wait_procs([first, child])
    monkeypatch.setattr("tests.process_tree.list_process_tree", lambda _: [first, child])
    signal_process_tree(parent.pid, signal.SIGTERM)


def test_ended_process_has_no_tree(parent: "subprocess.Popen[bytes]") -> None:
    processes = list_process_tree(parent.pid)
    signal_process_tree(parent.pid, signal.SIGKILL)
    parent.wait()
    psutil.wait_procs(processes)
    assert list_process_tree(parent.pid) == []
    signal_process_tree(parent.pid, signal.SIGTERM)
