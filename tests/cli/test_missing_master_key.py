"""Commands create a master key for a new service only, and never replace a missing one."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from identity.application_factory import create_application
from identity.ini_file import APP_SECTION, read_section
from identity.settings_parser import InvalidSetting
from identity.testing.clock import FakeClock
from tests.cli.conftest import INI, Run

ON_NOTHING = {
    "backup": ("--output", "{folder}/out"),
    "restore": ("--file", "{backup}"),
    "restore --check": ("--file", "{backup}"),
    "migrate --dry-run": (),
    "check": (),
    "export": ("--organization", "identity.localhost"),
    "audit": (),
    "purge": (),
    "rotate-keys": (),
    "rotate-master-key": (),
    "recover-admin": ("--user", "admin@identity.localhost"),
}


@pytest.fixture
def backup(run: Run, data: Path, tmp_path: Path) -> Path:
    file = tmp_path / "identity.backup"
    assert run("backup", "-c", INI, f"data={data}", "--output", file).status == 0
    return file


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ON_NOTHING)
def test_commands_create_neither_key_nor_folder(run: Run, command: str, backup: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    arguments = (argument.format(folder=tmp_path, backup=backup) for argument in ON_NOTHING[command])
    ran = run(*command.split(), "-c", INI, f"data={nowhere}", *arguments)
    assert ran.status == (0 if command == "migrate --dry-run" else 1)
    assert not nowhere.exists()
    assert not (tmp_path / "out").exists()


def test_restore_names_the_missing_key_file_and_works_with_it(
    run: Run, data: Path, backup: Path, tmp_path: Path
) -> None:
    path = tmp_path / "there"
    ran = run("restore", "-c", INI, f"data={path}", "--file", backup)
    assert ran.status == 1
    assert f"the master key {path}/master.key does not exist" in ran.err
    assert "wrong" not in ran.err
    path.mkdir()
    shutil.copy2(data / "master.key", path)
    assert run("restore", "-c", INI, f"data={path}", "--file", backup).status == 0
    assert run("check", "-c", INI, f"data={path}").status == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ["bootstrap", "check", "backup", "export", "rotate-master-key", "start"])
def test_missing_master_key_is_not_replaced_for_stored_data(run: Run, data: Path, command: str, tmp_path: Path) -> None:
    """Not even by the commands that create one for a new service."""
    os.rename(data / "master.key", tmp_path / "key")
    more = {"backup": ("--output", tmp_path / "out"), "export": ("--organization", "identity.localhost")}
    if command == "start":
        with pytest.raises(InvalidSetting, match=r"master key .* does not exist"):
            create_application(read_section(INI, APP_SECTION, {"data": str(data)}), clock=FakeClock())
    else:
        ran = run(command, "-c", INI, f"data={data}", *more.get(command, ()))
        # Exports contain no sealed values, so they work without the key.
        assert ran.status == (0 if command == "export" else 1)
        if command != "export":
            assert f"{data}/master.key does not exist" in ran.out + ran.err
    assert not (data / "master.key").exists()
    os.rename(tmp_path / "key", data / "master.key")
    assert run("check", "-c", INI, f"data={data}").status == 0


def test_new_service_gets_a_key(run: Run, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert run("migrate", "-c", INI, f"data={new}").status == 0
    assert not (new / "master.key").exists()
    assert run("bootstrap", "-c", INI, f"data={new}").status == 0
    assert (new / "master.key").stat().st_mode & 0o777 == 0o600
    assert run("check", "-c", INI, f"data={new}").status == 0


def test_unmigrated_database_gets_no_other_key(run: Run, tmp_path: Path) -> None:
    """The database has sealed values, although its schema is older."""
    old = tmp_path / "old"
    assert run("bootstrap", "-c", INI, f"data={old}").status == 0
    with closing(sqlite3.connect(old / "identity.sqlite")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '0009'")
    (old / "master.key").unlink()
    ran = run("bootstrap", "-c", INI, f"data={old}")
    assert (ran.status, "master.key does not exist" in ran.err) == (1, True)
    assert not (old / "master.key").exists()
