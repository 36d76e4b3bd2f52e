"""The benchmarks run, tell what they found and leave nothing behind. How fast anything is is no test's business."""

import json
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

from benchmarks.installation import installed
from benchmarks.load import generator
from benchmarks.service import Setup

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
CASES = {"hello", "discovery", "keys", "opaque", "jwt", "userinfo", "introspection", "authorize", "code", "refresh"}
TINY = ("--requests", "20", "--rounds", "1", "--starts", "1", "--connections", "4", "--unit", "cryptography")


def run(*arguments: str) -> str:
    """What a run prints; it leaves no folder behind."""
    command = [sys.executable, "-m", "benchmarks", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert not list((ROOT / "var").glob(f"benchmark-{process.pid}-*"))
    return said


def figures(file: Path, *arguments: str) -> Any:
    run(*TINY, "--json", str(file), *arguments)
    return json.loads(file.read_text())


def test_a_tiny_run_measures_everything(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    text = run(*TINY, "--json", str(file))
    found = json.loads(file.read_text())
    rows = {(row["server"], row["storage"], row["case"]): row for row in found["cases"]}
    assert {case for server, storage, case in rows if server == "waitress" and storage == "sqlite"} == {
        *CASES,
        "code-flow",
    }
    assert {(server, storage) for server, storage, _ in rows} == {
        ("waitress", "sqlite"),
        ("granian", "sqlite"),
        ("waitress", "postgresql"),
    }
    assert all(row["ratio"] > 0 and row["rate"] > 0 for row in rows.values())
    flow, first, second = (rows["granian", "sqlite", case] for case in ("code-flow", "authorize", "code"))
    assert flow["cpu"] == pytest.approx(first["cpu"] + second["cpu"])
    assert {row["rows"] for row in found["units"]["commits"]} == {1, 8}
    assert all(one["memory"] > 0 and one["start"] > 0 for one in found["services"])
    assert all(one["answers"]["422"] > 0 for one in found["floods"])
    assert found["sharing"]["delay"] == 2.0
    judged = {one["figure"] for one in found["readings"] if one["met"] is not None}
    assert judged >= {"cost", "tail", "flood", "memory", "memory after the start", "start"}
    met = [one["met"] for one in found["readings"] if one["met"] is not None]
    assert f"verdict: {sum(met)} of {len(met)} targets hold" in text


def test_a_case_alone_gets_what_its_requests_are_made_of(tmp_path: Path) -> None:
    found = figures(tmp_path / "figures.json", "--server", "waitress", "--cases", "refresh")
    assert [row["case"] for row in found["cases"]] == ["refresh"]
    assert not found["floods"]
    assert found["sharing"] is None


def test_a_slow_disk_keeps_each_commit_waiting(tmp_path: Path) -> None:
    found = figures(tmp_path / "figures.json", "--slow-disk", "6")
    assert not found["cases"]
    assert all(found["sharing"]["shared"][case]["p50"] > 0.006 for case in ("opaque", "refresh"))


@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_what_is_stored_before_is_asked_about(tmp_path: Path, storage: str) -> None:
    found = figures(tmp_path / "figures.json", "--sizes", "3000", "--storage", storage)
    assert found["growth"]["applications"] == 30
    assert set(found["growth"]["ratios"]) == {"opaque", "userinfo", "introspection", "refresh"}


@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_what_is_stored_before_holds_together(storage: str) -> None:
    tables = ("access_tokens", "refresh_tokens", "users")
    with generator() as pool, installed(Setup(storage=storage, stored=2000), pool, shown=1) as installation:
        url = installation.place.database_url
        if url is None:
            database = installation.place.ini.parent / "data" / "identity.sqlite"
            with closing(sqlite3.connect(database)) as connection:
                assert not connection.execute("PRAGMA foreign_key_check").fetchall()
                counts = {table: _count(connection, table) for table in tables}
        else:
            with psycopg.connect(url) as connection:
                # Each rule is looked at anew, for all rows.
                for table, name, rule in connection.execute(_REFERENCES).fetchall():
                    connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {rule}")
                counts = {table: _count(connection, table) for table in tables}
                connection.rollback()
    # Besides what the service itself has made.
    assert 2000 < counts["access_tokens"] < 2010
    assert 200 < counts["refresh_tokens"] < 210
    assert 4 < counts["users"] < 14


_REFERENCES = (
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
)


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


@pytest.mark.skipif(not os.access("/sys/fs/cgroup", os.W_OK), reason="control groups are not ours to make here")
def test_workers_are_held_back_alike_with_the_settings_that_are_given(tmp_path: Path) -> None:
    token = tmp_path / "metrics.token"
    token.write_text("0123456789abcdef" * 3)
    token.chmod(0o600)
    setting = f"identity.plugin.metrics.token_file={token}"
    found = figures(tmp_path / "figures.json", "--scaling", "--set", setting)["scaling"]
    assert set(found["gains"]) == {"opaque", "introspection", "userinfo"}
    assert not [*Path("/sys/fs/cgroup").glob("**/identity-benchmark-*")]
    assert found["workers"] == 2
    assert found["settings"] == [setting.split("=")]


@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_requests_go_on_beside_a_purge(tmp_path: Path, storage: str) -> None:
    file = tmp_path / "figures.json"
    text = run(*TINY, "--json", str(file), "--purge", "2000", "--storage", storage)
    found = json.loads(file.read_text())["purging"]
    assert found["rows"] == 2000
    assert found["longest"] > 0
    assert all(found[when]["opaque"]["count"] > 0 for when in ("alone", "beside"))
    assert {"beside a purge", "batch of a purge"} == {one["figure"] for one in json.loads(file.read_text())["readings"]}
    assert "2,000 tokens purged" in text


@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_what_each_thing_adds_to_the_database_is_told(storage: str) -> None:
    header, _, *rows = run("--bytes", "--storage", storage, "--requests", "50").splitlines()[-8:]
    assert "each 50 times" in header
    assert [int(row[28:36]) > 0 for row in rows if not row.startswith("authorize")] == [True] * 5
    grown, of_audit, events = map(float, (rows[-1][28:36], rows[-1][36:46], rows[-1][46:54]))
    assert grown > of_audit > 0
    assert events >= 1


def test_another_checkout_is_measured_beside_and_not_judged(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "identity", other / "identity")
    shutil.copytree(ROOT / "benchmarks", other / "benchmarks")
    shutil.copy(ROOT / "development.ini", other)
    uses = other / "uses"
    module = other / "identity" / "__init__.py"
    module.write_text(
        f"{module.read_text()}\nimport sys\nopen({str(uses)!r}, 'a').write(' '.join(sys.orig_argv) + '\\n')\n"
    )
    found = figures(tmp_path / "figures.json", "--cases", "opaque", "--server", "waitress", "--against", str(other))
    assert {row["checkout"] for row in found["cases"]} == {str(ROOT), str(other)}
    assert [one["figure"] for one in found["readings"]].count("cost") == 1
    # Both the data and the service are the other's.
    assert "spawn_main" in uses.read_text()
    assert "benchmark.ini" in uses.read_text()


@pytest.mark.parametrize("case", ["introspection", "authorize", "refresh"])
def test_a_profile_says_where_the_time_goes(case: str) -> None:
    text = run("--profile", case, "--requests", "20")
    assert "CPU of one request" in text
    assert "identity.plugins.sql" in text


def test_the_profile_of_a_start_names_what_is_imported() -> None:
    assert "sqlalchemy" in run("--profile", "start")
