"""The resources that a service uses include those of its database processes, even of processes that have ended."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

psutil = pytest.importorskip("psutil", reason="the extra `bench` or `test` is not installed")

from benchmarks.service_process import ServiceProcesses  # noqa: E402

WORK = "import time\nwhile time.process_time() < 0.3: pass"
WORK_IN_A_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORK!r}])"


@contextmanager
def having_done(work: str) -> Iterator[Any]:
    """A process that has run the code and then waits."""
    command = [sys.executable, "-c", f"{work}\nprint(flush=True)\ninput()"]
    with psutil.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.communicate(b"\n")


@pytest.mark.parametrize("work", [WORK, WORK_IN_A_CHILD], ids=["itself", "a child that has ended"])
def test_database_counts_with_requests_and_not_with_the_start(work: str) -> None:
    with having_done("") as service, having_done(work) as database:
        alone, together = ServiceProcesses(service), ServiceProcesses(service, database.pid)
        assert together.cpu_seconds() - alone.cpu_seconds() > 0.25
        assert together.cpu_seconds(database=False) - alone.cpu_seconds() < 0.1
