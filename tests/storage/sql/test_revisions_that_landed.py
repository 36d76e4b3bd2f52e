"""Databases were made by the revisions: none is rewritten once it has landed."""

import ast
import sys
from pathlib import Path

import pytest

from identity.plugins.sql.migrations import hashes

FROZEN = "identity.plugins.sql.migrations.indexes"
FILES = [hashes.FOLDER / name for name in hashes.actual()]


def test_no_revision_was_changed_after_it_had_landed() -> None:
    assert hashes.actual() == hashes.recorded(), "see python -m identity.plugins.sql.migrations.hashes"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_revisions_import_nothing_that_moves(file: Path) -> None:
    tree = ast.walk(ast.parse(file.read_text()))
    imported = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
    imported |= {
        one.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import) for one in node.names
    }
    stable = {"alembic", "sqlalchemy", *sys.stdlib_module_names}
    assert {name for name in imported if name.partition(".")[0] not in stable} <= {FROZEN}


def test_a_changed_revision_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions").mkdir()
    for name in ("indexes.py", "mariadb.py", "versions/0001_first.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "hashes.txt").write_text("")
    monkeypatch.setattr(hashes, "FOLDER", tmp_path)
    monkeypatch.setattr(hashes, "_FILE", tmp_path / "hashes.txt")
    assert hashes.main() == 0
    (tmp_path / "versions/0002_second.py").write_text("")
    assert hashes.main() == 0
    assert hashes.recorded() == hashes.actual()
    (tmp_path / "versions/0001_first.py").write_text("changed")
    assert hashes.main() == 1
    assert hashes.recorded() != hashes.actual(), "what was recorded stays"
