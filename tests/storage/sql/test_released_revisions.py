"""Released revisions never change, and only schemas that they created are migrated."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.migrations import HEAD, fingerprints, hashes
from identity.plugins.sql.migrations.runner import upgrade
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import StorageUnavailable
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

FROZEN = "identity.plugins.sql.migrations.indexes"
FILES = [hashes.FOLDER / name for name in hashes.current_hashes()]
UNKNOWN = "was not made by a revision of this program"


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.thorough)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/identity.db"
    elif request.param == "mariadb":
        from identity.testing import mariadb as of_mariadb

        mariadb_server = request.getfixturevalue("mariadb_server")
        url = of_mariadb.new_database(mariadb_server)
        yield url
        of_mariadb.drop_database(mariadb_server, url)
    else:
        server: PostgresqlServer = request.getfixturevalue("postgresql_server")
        url = new_database(server)
        yield url
        drop_database(server, url)


def changed(url: str, revision: str | None, *statements: str) -> None:
    """Create the schema of a revision, then change it by hand."""
    engine = create_engine(SqlPluginSettings(url=url).database_url())
    with engine.begin() as connection:
        if revision is not None:
            upgrade(connection, revision)
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def refusals(url: str) -> list[str]:
    """The error message of each command; "" if it succeeds."""
    refusals_found = []
    backend = SqlBackend(SqlPluginSettings(url=url))

    def back_up() -> None:
        with backend.dump():
            pass

    attempts: tuple[Callable[[], object], ...] = (
        backend.check,
        lambda: backend.migrate(dry_run=True),
        backend.migration_sql,
        backend.migrate,
        back_up,
    )
    for attempt in attempts:
        try:
            attempt()
        except StorageUnavailable as problem:
            refusals_found.append(str(problem))
        else:
            refusals_found.append("")
    backend.close()
    return refusals_found


def tables_kept(url: str) -> set[str]:
    engine = create_engine(SqlPluginSettings(url=url).database_url())
    with engine.connect() as connection:
        facts = fingerprints.read_fingerprint(connection)
    engine.dispose()
    return facts


def test_released_revisions_are_unchanged() -> None:
    assert hashes.current_hashes() == hashes.recorded_hashes(), "see python -m identity.plugins.sql.migrations.hashes"


def test_fingerprints_are_those_of_the_revisions(empty: str) -> None:
    kind = empty.partition(":")[0]
    created = hashes.create_fingerprints(kind, empty)
    assert created == fingerprints.recorded_fingerprints(kind), "see python -m identity.plugins.sql.migrations.hashes"
    assert (fingerprints.FOLDER / f"{kind}.txt").read_text() == fingerprints.serialize_fingerprints(created)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_revisions_import_no_application_code(file: Path) -> None:
    tree = ast.walk(ast.parse(file.read_text()))
    imported = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
    imported |= {
        name.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import)
        for name in node.names
    }
    stable = {"alembic", "sqlalchemy", *sys.stdlib_module_names}
    assert {name for name in imported if name.partition(".")[0] not in stable} <= {FROZEN}


def test_changed_revision_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions").mkdir()
    for name in ("indexes.py", "mariadb.py", "versions/0001_first.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "hashes.txt").write_text("")
    monkeypatch.setattr(hashes, "FOLDER", tmp_path)
    monkeypatch.setattr(hashes, "_FILE", tmp_path / "hashes.txt")
    hashes.record_hashes()
    (tmp_path / "versions/0002_second.py").write_text("")
    assert hashes.record_hashes() == ["versions/0002_second.py"]
    assert (hashes.changed_files(), hashes.recorded_hashes()) == ([], hashes.current_hashes())
    (tmp_path / "versions/0001_first.py").write_text("changed")
    assert hashes.main() == 1
    assert hashes.recorded_hashes() != hashes.current_hashes(), "what was recorded stays"


def test_database_of_an_early_development_version_is_refused(empty: str) -> None:
    """Early versions reused revision ids: the id is known, but the schema has other columns."""
    if empty.startswith("mariadb"):
        pytest.skip("early versions knew no MariaDB")
    changed(
        empty,
        None,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        "INSERT INTO alembic_version VALUES ('0004')",
        "CREATE TABLE organizations (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, created_at BIGINT NOT NULL)",
        "CREATE TABLE sessions (id TEXT NOT NULL PRIMARY KEY, user_id TEXT NOT NULL, secret TEXT NOT NULL)",
    )
    before = tables_kept(empty)
    problems = refusals(empty)
    assert all(UNKNOWN in item and "identity export" in item for item in problems)
    assert tables_kept(empty) == before


@pytest.mark.parametrize("revision", ["0013", "9999"])
def test_early_revision_that_is_above_ours_is_not_called_newer(empty: str, revision: str) -> None:
    changed(
        empty,
        None,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        f"INSERT INTO alembic_version VALUES ('{revision}')",  # noqa: S608
    )
    assert all(UNKNOWN in refusal for refusal in refusals(empty))


@pytest.mark.sampled(5, thorough=12)
@pytest.mark.parametrize(("statement", "problem"), [
    ("ALTER TABLE token_families DROP COLUMN acr", "token_families column acr text default is missing"),
    ("ALTER TABLE projects ADD COLUMN given INTEGER NOT NULL DEFAULT 0", ""),
    ("ALTER TABLE projects ADD COLUMN given INTEGER", ""),
    ("CREATE INDEX of_an_operator ON projects (created_at)", ""),
    ("CREATE TABLE of_others (id INTEGER PRIMARY KEY, name TEXT)", ""),
    ("CREATE UNIQUE INDEX of_an_operator ON projects (created_at)", "projects unique (created_at) should not be there"),
    ("DROP TABLE audit_floor", "audit_floor column id integer is missing"),
    ("DROP TRIGGER audit_events_are_kept", "audit_events trigger audit_events_are_kept is missing"),
    ("DROP INDEX ix_domains_of_nobody", None),
])  # fmt: skip
@pytest.mark.parametrize("revision", ["0008", HEAD])
def test_changed_tables_are_reported_and_additions_are_not(
    empty: str, statement: str, problem: str | None, revision: str
) -> None:
    kind = empty.partition(":")[0]
    if problem is None:
        statement, problem = "DROP INDEX uq_domains_name", "domains unique (name) where is missing"
        if kind == "mariadb":
            statement, problem = f"{statement} ON domains", "domains unique (name_that_counts) is missing"
    if kind == "postgresql" and "TRIGGER" in statement:
        statement += " ON audit_events"
    changed(empty, revision, statement)
    before = tables_kept(empty)
    problems = refusals(empty)
    if problem:
        assert all(problem in item for item in problems)
        assert tables_kept(empty) == before
    else:
        assert problems[1:] == [""] * 4
        assert problems[0] == "" or "older than this version" in problems[0]


def test_foreign_tables_are_ignored(empty: str) -> None:
    changed(empty, None, "CREATE TABLE users (id INTEGER PRIMARY KEY, login VARCHAR(20))")
    backend = SqlBackend(SqlPluginSettings(url=empty))
    for attempt in (backend.migrate, lambda: backend.migrate(dry_run=True)):
        with pytest.raises(StorageUnavailable, match="tables of these names: users"):
            attempt()
    assert {fact.split()[0] for fact in tables_kept(empty)} == {"users"}
    backend.close()


def test_partitions_and_a_restored_copy_are_recognized(postgresql_server: PostgresqlServer) -> None:
    """As in the documentation on sizing."""
    url = new_database(postgresql_server)
    changed(
        url,
        HEAD,
        "ALTER TABLE refresh_tokens RENAME TO refresh_tokens_before",
        "CREATE TABLE refresh_tokens (LIKE refresh_tokens_before INCLUDING ALL) PARTITION BY HASH (digest)",
        *(
            f"CREATE TABLE refresh_tokens_{n} PARTITION OF refresh_tokens FOR VALUES WITH (MODULUS 2, REMAINDER {n})"
            for n in range(2)
        ),
        "ALTER TABLE refresh_tokens ADD CONSTRAINT fk_refresh_tokens_family_id"
        " FOREIGN KEY (family_id) REFERENCES token_families (id) ON DELETE CASCADE",
        "DROP TABLE refresh_tokens_before",
    )
    assert refusals(url) == [""] * 5
    drop_database(postgresql_server, url)


def test_account_that_may_not_see_triggers_is_served(mariadb_server: object) -> None:
    """MariaDB shows triggers only to accounts with the TRIGGER privilege."""
    from identity.testing import mariadb as of_mariadb

    server: of_mariadb.MariadbServer = mariadb_server  # type: ignore[assignment]
    url = of_mariadb.new_database(server)
    changed(url, HEAD)
    name = url.partition("?")[0].rpartition("/")[2]
    server.execute(
        "CREATE USER IF NOT EXISTS serving@localhost",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.* TO serving@localhost",
    )
    backend = SqlBackend(SqlPluginSettings(url=url.replace("root@", "serving@")))
    backend.check()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization())
    backend.close()
    of_mariadb.drop_database(server, url)
