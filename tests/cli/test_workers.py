"""identity workers: which processes serve, as somebody else on the machine sees them."""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from identity.server import looking
from tests.cli.conftest import Run
from tests.house.workers import Serving, end, start, wait_for

MOMENT = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  \d+ MB \(\d+ its own\)"
pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux alone tells of other processes")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """Two workers, which answer."""
    started = start(tmp_path, "--workers", "2")
    try:
        started.says("workers\n")
        yield started
    finally:
        end(started)


def test_it_tells_of_supervisor_generation_and_each_worker(run: Run, serving: Serving) -> None:
    serving.all_processes()
    first, second = sorted(serving.workers())
    ran = run("workers", "-c", serving.folder / "service.ini")
    assert (ran.status, ran.err) == (0, "")
    supervisor, generation, *workers = ran.out.splitlines()
    where = f"listen = 127.0.0.1:{serving.port}"
    assert re.fullmatch(rf"supervisor     process {serving.process.pid} +{MOMENT} +{where}", supervisor)
    pid = serving.generation().pid
    assert re.fullmatch(rf"  generation   process {pid} +{MOMENT} +answers, waitress", generation)
    told = [
        re.fullmatch(rf"    worker \d +process (\d+) +{MOMENT} +last sign of life \d+\.\d s ago", one)
        for one in workers
    ]
    assert sorted(int(one[1]) for one in told if one) == [first, second]


def test_a_worker_that_was_replaced_is_told(run: Run, serving: Serving) -> None:
    serving.all_processes()
    victim = serving.workers()[0]
    os.kill(victim, signal.SIGKILL)
    ini = serving.folder / "service.ini"
    ran = wait_for(lambda: run("workers", "-c", ini), lambda ran: ran.status == 0 and "replaced" in ran.out)
    assert f"process {victim} " not in ran.out
    assert ran.out.count("replaced 1 times") == 1
    serving.all_processes()


def test_a_worker_that_hangs_does_not_pass(run: Run, serving: Serving) -> None:
    """Long before it is replaced."""
    serving.all_processes()
    hanging = serving.workers()[0]
    ini = serving.folder / "service.ini"
    assert run("workers", "-c", ini).status == 0
    os.kill(hanging, signal.SIGSTOP)
    ran = wait_for(lambda: run("workers", "-c", ini), lambda ran: ran.status == 1)
    assert f"process {hanging} " in ran.out
    assert serving.workers()[0] == hanging
    os.kill(hanging, signal.SIGCONT)
    wait_for(lambda: run("workers", "-c", ini), lambda ran: ran.status == 0)


def test_workers_whose_supervisor_is_gone_are_told(run: Run, serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end soon, so they are shown as if it were gone."""
    serving.all_processes()
    found = [replace(one, supervisor=None) for one in looking.generations(str(serving.folder / "service.ini"))]
    monkeypatch.setattr(looking, "generations", lambda _ini: found)
    ran = run("workers", "-c", serving.folder / "service.ini")
    assert ran.status == 1
    assert ran.out.startswith("supervisor     gone")


def test_where_nobody_serves_it_says_what_does(run: Run, ini: str, tmp_path: Path) -> None:
    other = tmp_path / "other.ini"
    other.write_text(Path(ini).read_text())
    ran = run("workers", "-c", other)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"identity: No supervisor serves {other}.")


def test_where_the_system_tells_nothing_it_says_so(run: Run, ini: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.server.looking.can_look", lambda: False)
    ran = run("workers", "-c", ini)
    assert ran.status == 1
    assert "SIGUSR1" in ran.err
