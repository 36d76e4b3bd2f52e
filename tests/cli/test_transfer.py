"""identity export: an organization as a file."""

import json
import stat
import sys
from pathlib import Path

import pytest

from identity.cli import progress
from tests.cli.conftest import Run

OWN = "identity.localhost"


def exported(on_data: Run, *words: object) -> dict[str, object]:
    ran = on_data("export", "--organization", OWN, *words)
    assert (ran.status, ran.err) == (0, "")
    document: dict[str, object] = json.loads(ran.out)
    return document


class TestExport:
    def test_prints_the_document(self, on_data: Run) -> None:
        document = exported(on_data)
        assert document["format"] == "identity-organization"
        assert exported(on_data) == document
        assert on_data("audit", "--event", "organization.exported").out.count("\n") == 2

    def test_writes_a_file_that_is_closed_to_others(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "own.json"
        ran = on_data("export", "--organization", OWN, "--output", file)
        assert (ran.status, ran.out, ran.err) == (0, "", "")
        assert json.loads(file.read_text()) == exported(on_data)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_replaces_no_file(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "own.json"
        file.write_text("mine")
        ran = on_data("export", "--organization", OWN, "--output", file)
        assert (ran.status, ran.err) == (1, f"identity: {file} exists already; move it away, or choose another file.\n")
        assert [one.read_text() for one in tmp_path.iterdir() if one.is_file()] == ["mine"]

    def test_names_what_it_does_not_find(self, on_data: Run, tmp_path: Path) -> None:
        ran = on_data("export", "--organization", "nowhere", "--output", tmp_path / "x.json")
        assert ran.status == 1
        assert ran.err == "identity: There is no organization nowhere. Give its id or its primary domain.\n"
        assert not [one for one in tmp_path.iterdir() if one.is_file()]

    def test_leaves_nothing_when_it_is_stopped(
        self, on_data: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(progress.Progress, "add", stop)
        assert on_data("export", "--organization", OWN, "--output", tmp_path / "x.json").status == 130
        assert not [one for one in tmp_path.iterdir() if one.is_file()]


class TestProgress:
    def test_is_told_when_it_takes_long(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: now)
        with progress.Progress() as told:
            told.add(1000, "{:,} done")
            now = 2.5
            told.add(1000, "{:,} done")
            told.add(1000, "{:,} done")
        assert capsys.readouterr().err == "2,000 done\n"

    def test_stays_in_one_place_on_a_terminal(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        with progress.Progress() as told:
            told.add(1, "{} done")
            told.add(1, "{} done")
        assert capsys.readouterr().err == "\r\x1b[K1 done\r\x1b[K2 done\n"
