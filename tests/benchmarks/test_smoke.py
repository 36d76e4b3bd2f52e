"""The benchmarks run, tell what they found and leave nothing behind. How fast anything is is no test's business."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the extra `bench` or `test` is not installed")

ROOT = Path(__file__).resolve().parents[2]
CASES = {"hello", "discovery", "keys", "opaque", "jwt", "userinfo", "introspection"}


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def folders() -> set[Path]:
    return set((ROOT / "var").glob("benchmark-*"))


def test_a_tiny_run_measures_every_case_and_leaves_nothing_behind(tmp_path: Path) -> None:
    before = folders()
    file = tmp_path / "figures.json"
    tiny = ("--requests", "20", "--rounds", "1", "--starts", "1", "--connections", "4", "--unit", "cryptography")
    text = run(*tiny, "--json", str(file))
    figures = json.loads(file.read_text())
    assert {row["case"] for row in figures["cases"]} == CASES
    assert all(row["ratio"] > 0 and row["rate"] > 0 for row in figures["cases"])
    assert figures["memory"]["bytes"] > 0
    assert "jwt-bearer, opaque" in text
    assert folders() <= before


def test_a_profile_says_where_the_time_goes() -> None:
    text = run("--profile", "introspection", "--requests", "20")
    assert "CPU of one request" in text
    assert "sqlalchemy" in text
