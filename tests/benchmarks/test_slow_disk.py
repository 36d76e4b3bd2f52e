"""A slow disk is one for whoever is started with it; without a compiler there is none, and the run says so."""

import os
import shutil
import subprocess
import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the extra `bench` or `test` is not installed")

from benchmarks.results import Result
from benchmarks.run import _sharing
from benchmarks.service import Setup
from benchmarks.slow_disk import NoCompiler, environment

SYNC = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
started = time.perf_counter()
os.{call}(file)
print(time.perf_counter() - started)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_each_sync_takes_so_much_longer(tmp_path: Path, call: str) -> None:
    command = [sys.executable, "-c", SYNC.format(call=call), str(tmp_path / "file")]
    env = {**os.environ, **environment(tmp_path, milliseconds=80)}
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert float(answer.stdout) >= 0.08


def test_without_a_compiler_the_rest_is_measured_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NoCompiler):
        environment(tmp_path, milliseconds=2)
    options = Namespace(slow_disk=None, against=None, rounds=1, seconds=0.1)
    with ThreadPoolExecutor(1) as pool:
        result = _sharing(options, [Setup()], pool, Result(rounds=1, connections=[16]))
    assert result.sharing is None
    assert "no C compiler" in result.notes[0]
