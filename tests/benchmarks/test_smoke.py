"""The benchmarks run, tell what they found and leave nothing behind. How fast anything is is no test's business."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the extra `bench` or `test` is not installed")

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
CASES = {"hello", "discovery", "keys", "opaque", "jwt", "userinfo", "introspection", "authorize", "code", "refresh"}
TINY = ("--requests", "20", "--rounds", "1", "--starts", "1", "--connections", "4", "--unit", "cryptography")


def run(*arguments: str) -> str:
    """What a run prints; it leaves no folder behind."""
    command = [sys.executable, "-m", "benchmarks", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert not list((ROOT / "var").glob(f"benchmark-{process.pid}-*"))
    return said


def test_a_tiny_run_measures_everything_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    text = run(*TINY, "--json", str(file))
    figures = json.loads(file.read_text())
    rows = {row["case"]: row for row in figures["cases"]}
    assert set(rows) == CASES | {"code-flow"}
    assert all(row["ratio"] > 0 and row["rate"] > 0 for row in rows.values())
    assert rows["code-flow"]["cpu"] == pytest.approx(rows["authorize"]["cpu"] + rows["code"]["cpu"])
    assert figures["memory"]["bytes"] > 0
    assert figures["flood"]["answers"]["422"] > 0
    assert set(figures["flood"]["ratios"]) == {"userinfo", "introspection", "opaque"}
    assert "jwt-bearer, opaque" in text
    assert "code flow with PKCE" in text
    assert "flood of logins" in text


def test_a_case_alone_gets_what_its_requests_are_made_of(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    run(*TINY, "--cases", "refresh", "--json", str(file))
    figures = json.loads(file.read_text())
    assert [row["case"] for row in figures["cases"]] == ["refresh"]
    assert "flood" not in figures


@pytest.mark.parametrize("case", ["introspection", "authorize", "refresh"])
def test_a_profile_says_where_the_time_goes(case: str) -> None:
    text = run("--profile", case, "--requests", "20")
    assert "CPU of one request" in text
    assert "sqlalchemy" in text
