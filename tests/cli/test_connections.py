"""identity check compares what all workers may open with what the database's server gives."""

from pathlib import Path

import pytest

from identity.plugins.sql import SqlBackend
from tests.cli.conftest import INI, Run


@pytest.mark.parametrize(("workers", "counted"), [(None, 1), ("3", 3)])
def test_connections_are_counted_for_all_workers(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str | None, counted: int
) -> None:
    ini = tmp_path / "service.ini"
    ini.write_text(Path(INI).read_text().replace("\nworkers =\n", f"\nworkers = {workers or ''}\n"))
    monkeypatch.setattr(SqlBackend, "connections_problem", lambda _, processes: f"{processes} processes are too many")
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert f"FAILED  connections: {counted} processes are too many" in ran.out
