"""identity backup and restore: a restore drill, from a running service to another one."""

import json
import shutil
import sqlite3
import stat
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from identity.cli import progress
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database
from tests.cli.conftest import INI, Run


@pytest.fixture
def backup(on_data: Run, tmp_path: Path) -> Path:
    """A backup of the bootstrapped service."""
    file = tmp_path / "identity.backup"
    ran = on_data("backup", "--output", file)
    assert (ran.status, ran.err) == (0, "")
    assert "A restore needs the master keys development" in ran.out
    return file


@pytest.fixture
def other_folder(data: Path, tmp_path: Path) -> Path:
    """The data folder of another machine, with a copy of the master key."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    shutil.copy2(data / "master.key", folder)
    return folder


@pytest.fixture
def postgresql_ini(postgresql_server: PostgresqlServer, tmp_path: Path) -> Iterator[Path]:
    """The same ini file for an empty PostgreSQL database."""
    url = new_database(postgresql_server)
    file = tmp_path / "postgresql.ini"
    lines = Path(INI).read_text().splitlines()
    quoted = url.replace("%", "%%")
    changed = [f"identity.plugin.sql.url = {quoted}" if "plugin.sql.url" in line else line for line in lines]
    file.write_text("\n".join(changed))
    yield file
    drop_database(postgresql_server, url)


def the_export(run: Run, ini: object, data: Path) -> str:
    ran = run("export", "-c", ini, f"data={data}", "--organization", "identity.localhost")
    assert (ran.status, ran.err) == (0, "")
    return ran.out


class TestDrill:
    def test_restore_on_another_machine_is_complete(
        self, run: Run, data: Path, backup: Path, other_folder: Path
    ) -> None:
        expected = the_export(run, INI, data)
        shutil.rmtree(data)
        ran = run("restore", "-c", INI, f"data={other_folder}", "--file", backup)
        assert (ran.status, ran.err) == (0, "")
        assert "tables were restored, as of " in ran.out
        assert run("check", "-c", INI, f"data={other_folder}").status == 0
        assert the_export(run, INI, other_folder) == expected

    @pytest.mark.thorough
    def test_installation_moves_to_postgresql_and_back(
        self, run: Run, data: Path, backup: Path, other_folder: Path, postgresql_ini: Path, tmp_path: Path
    ) -> None:
        options = ("-c", postgresql_ini, f"data={other_folder}")
        assert run("restore", *options, "--file", backup).status == 0
        assert run("check", *options).status == 0
        assert the_export(run, postgresql_ini, other_folder) == the_export(run, INI, data)
        assert run("backup", *options, "--output", tmp_path / "second").status == 0
        back = ("-c", INI, f"data={other_folder}")
        assert run("restore", *back, "--file", tmp_path / "second").status == 0
        assert run("check", *back).status == 0

    def test_restore_refuses_a_database_in_use(self, on_data: Run, backup: Path) -> None:
        ran = on_data("restore", "--file", backup)
        assert ran.status == 1
        assert ran.err.startswith("identity: The database is not empty: ")
        assert on_data("check").status == 0


class TestTrail:
    def test_backup_and_restore_are_audited(self, run: Run, on_data: Run, backup: Path, other_folder: Path) -> None:
        options = ("-c", INI, f"data={other_folder}")
        assert run("restore", *options, "--file", backup, "--check").status == 0
        event = json.loads(on_data("audit", "--event", "backup").out)
        assert (event["event"], event["actor"]["kind"], event["object_kind"]) == ("backup.made", "operator", "instance")
        assert event["detail"].keys() == {"made_at", "made_by", "rows"}
        assert run("restore", *options, "--file", backup).status == 0
        restored = json.loads(run("audit", *options, "--event", "backup").out)
        assert (restored["event"], restored["detail"]) == ("backup.restored", event["detail"])

    def test_backup_of_a_read_only_database(self, on_data: Run, backup: Path, data: Path, tmp_path: Path) -> None:
        with closing(sqlite3.connect(data / "identity.sqlite")) as database, database:
            database.execute("CREATE TRIGGER full BEFORE INSERT ON audit_events BEGIN SELECT RAISE(ABORT, 'no'); END")
        ran = on_data("backup", "--output", tmp_path / "second")
        assert (ran.status, ran.err.partition(". ")[0]) == (0, "No audit event tells of it")
        assert on_data("restore", "--file", tmp_path / "second", "--check").status == 0


class TestFile:
    def test_backup_file_is_private_and_overwrites_none(self, on_data: Run, backup: Path) -> None:
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
        before = backup.read_bytes()
        ran = on_data("backup", "--output", backup)
        assert (ran.status, ran.err) == (
            1,
            f"identity: {backup} exists already; move it away, or choose another file.\n",
        )
        assert backup.read_bytes() == before

    def test_backup_holds_no_master_key_and_no_plaintext_secrets(self, data: Path, backup: Path) -> None:
        with zipfile.ZipFile(backup) as archive:
            text = b"".join(map(archive.read, archive.namelist()))
        assert (data / "master.key").read_bytes().strip() not in text
        assert b"PRIVATE" not in text

    def test_interrupted_backup_leaves_nothing(
        self, on_data: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(progress.ProgressReporter, "add", stop)
        assert on_data("backup", "--output", tmp_path / "stopped").status == 130
        assert not [path for path in tmp_path.iterdir() if path.is_file()]

    def test_backup_can_be_verified_without_restore(self, on_data: Run, backup: Path) -> None:
        ran = on_data("restore", "--file", backup, "--check")
        assert (ran.status, ran.err) == (0, "")
        assert "would be restored, as of " in ran.out


class TestRefusals:
    def refusal(self, run: Run, folder: Path, file: Path, ini: object = INI) -> str:
        """The error message, after checking that nothing was written."""
        ran = run("restore", "-c", ini, f"data={folder}", "--file", file)
        assert ran.status == 1
        assert not (folder / "identity.sqlite").exists()
        return ran.err

    def test_another_master_key(self, run: Run, backup: Path, other_folder: Path) -> None:
        (other_folder / "master.key").unlink()
        assert run("master-key", other_folder / "master.key").status == 0
        message = self.refusal(run, other_folder, backup)
        assert message.startswith("identity: The master key development in identity.master_keys is not the one")

    def test_missing_master_key_is_refused(self, run: Run, backup: Path, other_folder: Path, tmp_path: Path) -> None:
        assert run("master-key", tmp_path / "new.key").status == 0
        other = f"identity.master_keys = 2:{tmp_path}/new.key"
        (tmp_path / "other.ini").write_text(Path(INI).read_text().replace("identity.master_keys =", other))
        message = self.refusal(run, other_folder, backup, tmp_path / "other.ini")
        assert "was made with the master keys development, and identity.master_keys lacks development" in message

    def test_foreign_file_is_refused(self, run: Run, other_folder: Path, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("no backup")
        assert "is no backup" in self.refusal(run, other_folder, tmp_path / "text")
        assert "No such file" in self.refusal(run, other_folder, tmp_path / "none")

    def test_truncated_backup_is_refused(self, run: Run, backup: Path, other_folder: Path) -> None:
        backup.write_bytes(backup.read_bytes()[:-1000])
        assert "is no backup, or only a part of one" in self.refusal(run, other_folder, backup)

    @pytest.mark.parametrize("damage", ["a bit", "a row more", "a row less", "gone"])
    def test_changed_table_is_refused(self, run: Run, backup: Path, other_folder: Path, damage: str) -> None:
        if damage == "a bit":
            content = bytearray(backup.read_bytes())
            at = content.index(b"tables/users.jsonl") + 150
            content[at] ^= 1
            backup.write_bytes(content)
        else:
            change = {"a row more": lambda text: text + text.splitlines(keepends=True)[-1], "gone": lambda _: None}
            rewrite(backup, "tables/users.jsonl", change.get(damage, lambda text: text[: text.index(b"\n") + 1]))
        assert "The backup is damaged: users is not as it was written" in self.refusal(run, other_folder, backup)

    def test_rewritten_manifest_is_refused(self, run: Run, backup: Path, other_folder: Path) -> None:
        rewrite(backup, "manifest.json", lambda text: text + b"\n")
        assert "The manifest of the backup was changed" in self.refusal(run, other_folder, backup)

    @pytest.mark.thorough
    @pytest.mark.parametrize("seals", [b"{}", b"[]", b'{"development": "AAAA"}', b'{"development": 1}', b"no JSON"])
    def test_invalid_seals_are_refused(self, run: Run, backup: Path, other_folder: Path, seals: bytes) -> None:
        rewrite(backup, "seals.json", lambda _: seals)
        message = self.refusal(run, other_folder, backup)
        assert "is no backup, or a damaged one" in message or "or the backup was changed" in message


def rewrite(backup: Path, name: str, change: object) -> None:
    """Rewrite the archive with one entry changed or removed."""
    with zipfile.ZipFile(backup) as archive:
        entries = {item: archive.read(item) for item in archive.namelist()}
    with zipfile.ZipFile(backup, "w") as archive:
        for entry, text in entries.items():
            written = change(text) if entry == name else text  # type: ignore[operator]
            if written is not None:
                archive.writestr(entry, written)
