"""Each mode runs, prints its results and leaves no files behind. Speed is not tested."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

pytest.importorskip("psutil", reason="the extra `bench` or `test` is not installed")

from benchmarks import cli
from benchmarks.cpu_ratios import TITLES
from benchmarks.installations import install_service
from benchmarks.load_generator import load_generator_process
from benchmarks.service_process import ServiceConfiguration
from benchmarks.targets import TargetResult

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
TINY = ("--requests", "20", "--rounds", "1", "--seconds", "0.1", "--connections", "4")
NODE = Path(os.environ.get("OIDC_PROVIDER", "")) / "node_modules" / "oidc-provider"


def run(*arguments: str, environment: dict[str, str] | None = None, status: int = 0) -> str:
    """The output of a run, after checking that it leaves no folder behind."""
    command = [sys.executable, "-m", "benchmarks", *arguments]
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == status, output
    assert not list((ROOT / "var").glob(f"benchmark-{process.pid}-*"))
    return output


def without_node(folder: Path) -> dict[str, str]:
    """An environment whose PATH contains no programs."""
    return {"PATH": str(folder)}


def test_ratios_without_node_are_plain_figures(tmp_path: Path) -> None:
    output = run(*TINY, "--storage", "sqlite", environment=without_node(tmp_path))
    assert "without node-oidc-provider: node is not installed" in output
    assert all(title in output for title in TITLES.values())
    assert "verdict" not in output


@pytest.mark.skipif(not NODE.is_dir() or shutil.which("node") is None, reason="OIDC_PROVIDER names no oidc-provider")
def test_ratios_beside_node_are_judged() -> None:
    output = run(*TINY, "--storage", "sqlite", "--cases", "keys", "refresh", "code-flow")
    assert "node-oidc-provider" in output
    assert "of 3 targets hold" in output


def test_strict_alone_fails_for_missed_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    missed = [TargetResult("start", 2.0, 1.0)]
    monkeypatch.setattr(cli, "_run_mode", lambda options: ([], missed))
    assert cli.main(["memory"]) == 0
    assert cli.main(["memory", "--strict"]) == 1


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("vgdb") is None, reason="valgrind is not installed")
def test_instructions_are_counted() -> None:
    line = run("instructions", "--cases", "keys").splitlines()[-1]
    assert line.startswith("keys, sqlite")
    assert 50 < float(line.split()[-1].replace(",", "")) < 5000


def test_instructions_need_valgrind(tmp_path: Path) -> None:
    assert "valgrind is not installed" in run("instructions", environment=without_node(tmp_path), status=2)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("memory", *TINY, "--storage", "sqlite"), "MB after the start"),
        (("profile", "--cases", "keys", "--seconds", "0.3"), "functions with what they call"),
        (("flood", "--rounds", "1", "--storage", "sqlite"), "in the flood"),
        (("workers", *TINY), "with one worker, and with two"),
        (("growth", *TINY, "--tokens", "3000"), "3,000 tokens and 30 applications"),
        (("purge", "--tokens", "2000"), "2,000 tokens purged"),
        (("storing", "--requests", "20"), "sign-in with a password"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_mode_prints_its_results(arguments: tuple[str, ...], expected: str) -> None:
    assert expected in run(*arguments)


@pytest.mark.exhaustive
def test_page_is_written(tmp_path: Path) -> None:
    file = tmp_path / "figures.txt"
    run(*TINY, "--page", "--page-file", str(file))
    assert "**Computed, not measured:** 2,334 tokens" in file.read_text()


@pytest.mark.exhaustive
@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_stored_copies_satisfy_references(storage: str) -> None:
    tables = ("access_tokens", "refresh_tokens", "users")
    with (
        load_generator_process() as pool,
        install_service(
            ServiceConfiguration(storage=storage, stored_tokens=2000), pool, presented_tokens=1
        ) as installation,
    ):
        url = installation.deployment.database_url
        if url is None:
            database = installation.deployment.ini.parent / "data" / "identity.sqlite"
            with closing(sqlite3.connect(database)) as connection:
                assert not connection.execute("PRAGMA foreign_key_check").fetchall()
                counts = {table: _count(connection, table) for table in tables}
        else:
            with psycopg.connect(url) as connection:
                # Check every constraint again, for all rows.
                for table, name, rule in connection.execute(_REFERENCES).fetchall():
                    connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {rule}")
                counts = {table: _count(connection, table) for table in tables}
                connection.rollback()
    # The service itself stores a few more.
    assert 2000 < counts["access_tokens"] < 2010
    assert 200 < counts["refresh_tokens"] < 210
    assert 4 < counts["users"] < 14


_REFERENCES = (
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
)


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608
