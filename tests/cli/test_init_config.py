from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Run

FILES = ("development.ini", "production.ini")


def test_written_files_match_the_checkout(run: Run, tmp_path: Path) -> None:
    assert run("init-config", "--folder", tmp_path / "new").status == 0
    for name in FILES:
        assert (tmp_path / "new" / name).read_text() == (ROOT / name).read_text()


def test_given_variables_are_written(run: Run, tmp_path: Path) -> None:
    issuer, database = "https://id.acme.example", r"postgresql+psycopg://identity@db/a%%20\1"
    assert run("init-config", "--folder", tmp_path, f"issuer={issuer}", "proxy=", f"database={database}").status == 0
    written = RawConfigParser()
    written.read(tmp_path / "production.ini")
    assert (written["DEFAULT"]["issuer"], written["DEFAULT"]["database"]) == (issuer, database)
    expected = [line for line in (ROOT / "production.ini").read_text().splitlines() if "issuer =" not in line]
    assert set(expected) - set((tmp_path / "production.ini").read_text().splitlines()) == {
        "database = postgresql+psycopg://identity@localhost/identity"
    }


def test_existing_files_are_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "production.ini").write_text("mine")
    ran = run("init-config", "--folder", tmp_path)
    assert (ran.status, ran.err) == (
        1,
        f"identity: {tmp_path / 'production.ini'} is there already. Choose another folder, or move it away.\n",
    )
    assert (tmp_path / "production.ini").read_text() == "mine"
    assert not (tmp_path / "development.ini").exists()


@pytest.mark.parametrize("value", ["nothing=1", "identity.issuer_url=https://x.example", "issuer=a\nb = c"])
def test_invalid_variable_value_is_refused(run: Run, tmp_path: Path, value: str) -> None:
    ran = run("init-config", "--folder", tmp_path / "new", value)
    assert ran.status == 1
    assert ran.err.startswith("identity: ")
    assert not (tmp_path / "new").exists()
