"""identity import-users: people from a CSV file."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run

TO_OWN_ORGANIZATION = ("--organization", "identity.localhost", "--as", "admin@identity.localhost")
TEXT = "user_name,given_name,family_name\nanna,Anna,Ahlers\n,No,Name\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    return path


def test_people_are_imported_after_a_dry_run(on_data: Run, file: Path) -> None:
    ran = on_data("import-users", "-f", file, *TO_OWN_ORGANIZATION, "--dry-run")
    assert ran.err == "1 would be created, 0 exist already, 1 refused.\n"
    ran = on_data("import-users", "-f", file, *TO_OWN_ORGANIZATION)
    assert (ran.status, ran.err) == (1, "1 created, 0 exist already, 1 refused.\n")
    lines = ran.out.splitlines()
    assert lines[:2] == ["line,user_name,result,problem", "2,anna,created,"]
    assert lines[2].startswith("3,,refused,user_name: ")
    file.write_text(TEXT.replace(",No,Name\n", ""))
    ran = on_data("import-users", "-f", file, *TO_OWN_ORGANIZATION)
    assert (ran.status, ran.err) == (0, "0 created, 1 exist already, 0 refused.\n")


def test_import_has_the_rights_of_its_starter(on_data: Run, file: Path) -> None:
    ran = on_data(
        "import-users", "-f", file, "--organization", "identity.localhost", "--as", "example@identity.localhost"
    )
    assert ran.status == 1
    assert "user.write" in ran.err


def test_missing_file_is_named(on_data: Run, tmp_path: Path) -> None:
    ran = on_data("import-users", "-f", tmp_path / "none.csv", *TO_OWN_ORGANIZATION)
    assert (ran.status, ran.err) == (1, f"identity: There is no file {tmp_path / 'none.csv'}.\n")
