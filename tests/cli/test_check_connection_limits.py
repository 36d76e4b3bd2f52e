"""identity check compares the connections that all workers may open with the limit of the database server."""

import re
from pathlib import Path

import pytest

from identity.plugins.sql import SqlBackend
from tests.cli.conftest import INI, Run


@pytest.mark.parametrize(("workers", "counted"), [(None, 2), ("3", 3), ("environment", 4)])
def test_connections_are_counted_for_all_workers(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str | None, counted: int
) -> None:
    if workers == "environment":
        monkeypatch.setenv("WEB_CONCURRENCY", "4")
        workers = None
    ini = tmp_path / "service.ini"
    text = Path(INI).read_text()
    server = f"[server:main]\nuse = egg:gunicorn#main\nbind = 127.0.0.1:8080\nworkers = {workers or ''}\n"
    ini.write_text(re.sub(r"\[server:main\].*?(?=\n\[)", server, text, flags=re.DOTALL))
    monkeypatch.setattr("identity.cpu_count.available_cpus", lambda: 2)
    monkeypatch.setattr(SqlBackend, "has_single_writer", property(lambda _: False, lambda *_: None))
    monkeypatch.setattr(
        SqlBackend, "connection_limit_problem", lambda _, processes: f"{processes} processes are too many"
    )
    ran = run("check", "-c", ini, f"data={data}")
    assert ran.status == 1
    assert f"FAILED  connections: {counted} processes are too many" in ran.out
