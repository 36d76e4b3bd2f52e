"""identity serve: the same service as under pserve, and what keeps it from starting in one line."""

import socket
from pathlib import Path

import pytest

from identity.cli import main
from identity.ini_values import BadSetting
from identity.server.listening import read_workers
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def log_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays as the tests have it."""
    monkeypatch.setattr("identity.ini_file.set_up_logging", lambda *_: None)


def test_auto_is_a_worker_for_each_processor_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.processors.available", lambda: 3)
    assert read_workers("auto") == 3
    assert read_workers(" 2") == 2
    assert read_workers("") is None
    for wrong in ("0", "-1", "1.5", "many", "²"):
        with pytest.raises(BadSetting, match="workers: must be auto, or a whole number"):
            read_workers(wrong)


def test_a_taken_port_is_told_and_nothing_made(ini: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            main(["serve", "-c", ini, f"http_port={port}", f"data={tmp_path / 'data'}", "--server", "granian"])
    assert not (tmp_path / "data").exists()


def test_without_granian_it_says_what_to_install(run: Run, ini: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.cli.serve.find_spec", {"waitress": "found"}.get)
    # Nothing is to be served, whatever happens.
    monkeypatch.setattr("identity.server.serving.taken", None)
    ran = run("serve", "-c", ini, "--server", "granian")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "identity: granian is not installed. The extra granian of this package brings it.\n"
