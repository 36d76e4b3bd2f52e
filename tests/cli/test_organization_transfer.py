"""identity export and import: an organization as a file."""

import json
import stat
import sys
from pathlib import Path

import pytest

from identity.cli import progress
from tests.cli.conftest import Run

OWN_ORGANIZATION = "identity.localhost"


def exported(on_data: Run, *arguments: object) -> dict[str, object]:
    ran = on_data("export", "--organization", OWN_ORGANIZATION, *arguments)
    assert (ran.status, ran.err) == (0, "")
    document: dict[str, object] = json.loads(ran.out)
    return document


class TestExport:
    def test_prints_the_document(self, on_data: Run) -> None:
        document = exported(on_data)
        assert document["format"] == "identity-organization"
        assert exported(on_data) == document
        assert on_data("audit", "--event", "organization.exported").out.count("\n") == 2

    def test_writes_a_private_file(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "own.json"
        ran = on_data("export", "--organization", OWN_ORGANIZATION, "--output", file)
        assert (ran.status, ran.out, ran.err) == (0, "", "")
        assert json.loads(file.read_text()) == exported(on_data)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_replaces_no_file(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "own.json"
        file.write_text("mine")
        ran = on_data("export", "--organization", OWN_ORGANIZATION, "--output", file)
        assert (ran.status, ran.err) == (1, f"identity: {file} exists already; move it away, or choose another file.\n")
        assert [path.read_text() for path in tmp_path.iterdir() if path.is_file()] == ["mine"]

    def test_missing_organization_is_named(self, on_data: Run, tmp_path: Path) -> None:
        ran = on_data("export", "--organization", "nowhere", "--output", tmp_path / "x.json")
        assert ran.status == 1
        assert ran.err == "identity: There is no organization nowhere. Give its id or its primary domain.\n"
        assert not [path for path in tmp_path.iterdir() if path.is_file()]

    def test_leaves_nothing_when_it_is_stopped(
        self, on_data: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(progress.ProgressReporter, "add", stop)
        assert on_data("export", "--organization", OWN_ORGANIZATION, "--output", tmp_path / "x.json").status == 130
        assert not [path for path in tmp_path.iterdir() if path.is_file()]


def make_document(domain: str, **members: object) -> str:
    head = {"format": "identity-organization", "version": 1, "instance": "01980000-0000-7000-8000-000000000000"}
    return json.dumps({**head, "organization": {"name": "New", "primary_domain": domain, **members}})


class TestImport:
    def test_import_restores_the_organization(self, on_data: Run, tmp_path: Path) -> None:
        document = exported(on_data)
        organization = document["organization"]
        assert isinstance(organization, dict)
        file = tmp_path / "copy.json"
        file.write_text(json.dumps({**document, "organization": {**organization, "primary_domain": "copy.localhost"}}))
        ran = on_data("import", "--file", file, "--new-ids")
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.startswith(f"{organization['name']} (copy.localhost) is there, with the id ")
        again = on_data("export", "--organization", "copy.localhost")
        assert len(json.loads(again.out)["organization"]["users"]) == len(organization["users"])
        assert organization["id"] not in again.out

    def test_import_keeps_ids_on_request(self, on_data: Run, tmp_path: Path) -> None:
        file, id_ = tmp_path / "new.json", "01980000-0000-7000-8000-000000000001"
        file.write_text(make_document("kept.localhost", id=id_))
        assert on_data("import", "--file", file, "--keep-ids").status == 0
        file.write_text(make_document("again.localhost", id=id_))
        again = on_data("import", "--file", file, "--keep-ids")
        assert again.status == 1
        assert "organization.id (line 1): " in again.err
        assert json.loads(on_data("export", "--organization", id_).out)["organization"]["id"] == id_

    def test_all_import_errors_are_reported_and_nothing_changes(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "wrong.json"
        users = [{"user_name": "a"}, {"user_name": "b", "given_name": "B", "family_name": "B"}]
        file.write_text(make_document("wrong.localhost", users=users, projects=[{"name": ""}]))
        ran = on_data("import", "--file", file)
        assert (ran.status, ran.out) == (1, "")
        assert sorted(ran.err.splitlines()[:3]) == [
            "organization.projects[0].name (line 1): Enter a name.",
            "organization.users[0].family_name (line 1): This is required.",
            "organization.users[0].given_name (line 1): This is required.",
        ]
        assert ran.err.splitlines()[3:] == [f"identity: {file} was not imported; nothing is changed."]
        assert on_data("export", "--organization", "wrong.localhost").status == 1

    def test_missing_member_is_reported_with_its_line(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "wrong.json"
        users = [{"user_name": 'a "quoted" {name', "given_name": "A", "family_name": "A"}, {"user_name": "b"}]
        text = json.dumps(json.loads(make_document("wrong.localhost", users=users, nonsense=[])), indent=2)
        file.write_text(text)
        ran = on_data("import", "--file", file)
        lines = text.splitlines()
        # A missing member is reported at the line of its object, an unknown member at its own line.
        second = next(number for number, line in enumerate(lines, 1) if '"user_name": "b"' in line) - 1
        nonsense = next(number for number, line in enumerate(lines, 1) if '"nonsense"' in line)
        assert f"organization.users[1].given_name (line {second}): This is required." in ran.err
        assert f"organization.nonsense (line {nonsense}): " in ran.err

    def test_reports_the_position_of_invalid_json(self, on_data: Run, tmp_path: Path) -> None:
        file = tmp_path / "cut.json"
        file.write_text(make_document("cut.localhost")[:-1])
        ran = on_data("import", "--file", file)
        assert ran.status == 1
        assert ran.err.startswith(f"identity: {file}: This is not valid JSON at line 1, column ")
        assert on_data("import", "--file", tmp_path / "none.json").err == (
            f"identity: There is no file {tmp_path}/none.json.\n"
        )

    def test_leaves_nothing_when_it_is_stopped(
        self, on_data: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        file, user = tmp_path / "new.json", {"user_name": "b", "given_name": "B", "family_name": "B"}
        file.write_text(make_document("stopped.localhost", users=[user]))
        monkeypatch.setattr(progress.ProgressReporter, "add", stop)
        assert on_data("import", "--file", file).status == 130
        monkeypatch.undo()
        assert on_data("export", "--organization", "stopped.localhost").status == 1
        assert on_data("import", "--file", file).status == 0


class TestProgress:
    def test_progress_is_reported_when_slow(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: now)
        with progress.ProgressReporter() as progress_reporter:
            progress_reporter.add(1000, "{:,} done")
            now = 2.5
            progress_reporter.add(1000, "{:,} done")
            progress_reporter.add(1000, "{:,} done")
        assert capsys.readouterr().err == "2,000 done\n"

    def test_progress_overwrites_its_line_on_a_terminal(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        with progress.ProgressReporter() as progress_reporter:
            progress_reporter.add(1, "{} done")
            progress_reporter.add(1, "{} done")
        assert capsys.readouterr().err == "\r\x1b[K1 done\r\x1b[K2 done\n"
