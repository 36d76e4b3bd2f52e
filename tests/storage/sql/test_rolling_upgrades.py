"""Earlier versions keep working with the current schema, as far back as a revision declares."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Inspector, MetaData, Table, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from identity.plugins.sql import SqlBackend, SqlPluginSettings, migrations
from identity.plugins.sql.migrations import HEAD, REVISIONS, fingerprints, require_usable_revision
from identity.plugins.sql.migrations.runner import oldest_compatible_revision, script_directory, upgrade
from identity.storage.errors import StorageUnavailable
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

pytestmark = pytest.mark.filterwarnings("ignore:.*expression-based index:sqlalchemy.exc.SAWarning")


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A database without a schema."""
    server: PostgresqlServer | None = None
    url = f"sqlite:///{tmp_path}/identity.db"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        url = new_database(server)
    engine = create_engine(SqlPluginSettings(url=url).database_url())
    yield engine
    engine.dispose()
    if server is not None:
        drop_database(server, url)


OLDEST = {revision.revision: oldest_compatible_revision(revision) for revision in script_directory().walk_revisions()}
#: Each revision, with the older ones that it declares compatible.
PAIRS = [
    pytest.param(old, new, marks=() if new == HEAD and old in {OLDEST[HEAD], REVISIONS[-2]} else pytest.mark.exhaustive)
    for new in REVISIONS
    for old in REVISIONS
    if OLDEST[new] <= old < new
]


#: A mapping has a provider or a directory, a federated credential a user or an application.
_ALTERNATIVES = {
    ("group_mappings", "directory"),
    ("attribute_mappings", "directory"),
    ("federated_credentials", "application_id"),
}


class OlderProgram:
    """A program of that version: it writes and reads the columns that it knows, by their constraints."""

    def __init__(self, connection: Connection) -> None:
        known = MetaData()
        known.reflect(connection)
        self._tables = [table for table in known.sorted_tables if table.name != "alembic_version"]
        self._rules = {table.name: _unique(inspect(connection), table.name) for table in self._tables}

    def run(self, connection: Connection) -> None:
        """Raises SQLAlchemyError if the version needs a missing column, or lacks a required one."""
        for table in self._tables:
            columns = [
                column
                for column in table.columns
                if column.name != "sequence" and (table.name, column.name) not in _ALTERNATIVES
            ]
            row = {column.name: _cell(column.type) for column in columns}
            connection.execute(Table(table.name, MetaData(), *(column._copy() for column in columns)).insert(), row)
            connection.execute(table.select()).all()
            if table.name != "audit_events":
                connection.execute(table.update().values(row))
            missing = self._rules[table.name] - _unique(inspect(connection), table.name)
            assert not missing, f"{table.name} has no rule any more that {missing} are unique"


def _unique(inspector: Inspector, table: str) -> set[tuple[str, ...]]:
    rules = [unique_constraint["column_names"] for unique_constraint in inspector.get_unique_constraints(table)]
    rules += [index["column_names"] for index in inspector.get_indexes(table) if index["unique"]]
    return {
        tuple(inspector.get_pk_constraint(table)["constrained_columns"]),
        *(tuple(map(str, rule)) for rule in rules),
    }


def _cell(kind: Any) -> Any:
    if kind.python_type is bytes:
        return b"x"
    return {bool: True, int: 1}.get(kind.python_type, "x")


def older_program(engine: Engine, revision: str) -> OlderProgram:
    with engine.begin() as connection:
        upgrade(connection, revision)
    with engine.connect() as connection:
        return OlderProgram(connection)


@pytest.mark.thorough
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_compatible_programs_keep_working(engine: Engine, old: str, new: str) -> None:
    program = older_program(engine, old)
    with engine.begin() as connection:
        upgrade(connection, new)
    with engine.begin() as connection:
        program.run(connection)


def test_incompatible_program_is_detected(engine: Engine) -> None:
    """Revision 0004 removed a column, which the test above would have reported."""
    assert OLDEST["0004"] == "0004"
    program = older_program(engine, "0003")
    with engine.begin() as connection:
        upgrade(connection, "0004")
    with pytest.raises(SQLAlchemyError, match="methods"), engine.begin() as connection:
        program.run(connection)


def test_compatibility_never_increases_with_revisions() -> None:
    programs = [OLDEST[revision] for revision in REVISIONS]
    assert programs == sorted(programs)
    assert all(oldest <= revision for revision, oldest in zip(REVISIONS, programs, strict=True))


def test_database_lists_compatible_releases(engine: Engine) -> None:
    older_program(engine, HEAD)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT oldest FROM alembic_version")).scalar() == OLDEST[HEAD]


@pytest.mark.parametrize(("stored", "oldest", "problem"), [
    (HEAD, None, None),
    ("9999", HEAD, None),
    ("9999", REVISIONS[0], None),
    ("9999", "9998", "newer than this version"),
    ("9999", None, "newer than this version"),
    (REVISIONS[0], REVISIONS[0], "older than this version"),
])  # fmt: skip
def test_program_runs_if_schema_declares_compatibility(stored: str, oldest: str | None, problem: str | None) -> None:
    if problem is None:
        require_usable_revision(stored, oldest)
        return
    with pytest.raises(StorageUnavailable, match=problem):
        require_usable_revision(stored, oldest)


def test_dry_run_lists_statements_rows_and_compatible_releases(engine: Engine) -> None:
    older_program(engine, "0003")
    backend = SqlBackend(SqlPluginSettings(url=engine.url.render_as_string(hide_password=False)))
    lines, plan = backend.migrate(dry_run=True), backend.migration_sql()
    assert lines[0].endswith("Stop all nodes of the present version first.")
    assert "-- sessions: about 0 rows" in plan
    assert "ALTER TABLE sessions DROP COLUMN methods;" in plan
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "0003"
    backend.migrate()
    assert (list(backend.migrate(dry_run=True)), list(backend.migration_sql())) == ([], [])
    backend.close()


def is_ready(backend: SqlBackend) -> bool:
    try:
        backend.check()
    except StorageUnavailable:
        return False
    return True


@pytest.mark.sampled(3, thorough=8)
@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_dry_run_compatibility_matches_the_release(
    engine: Engine, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older_program(engine, revision)
    url = engine.url.render_as_string(hide_password=False)
    migrating, program = SqlBackend(SqlPluginSettings(url=url)), SqlBackend(SqlPluginSettings(url=url))
    lines = migrating.migrate(dry_run=True)
    promised = {line.split(".", 1)[1] for line in lines}
    migrating.migrate()
    if revision < "0007":
        # That release only compares revisions.
        assert promised == {" Stop all nodes of the present version first."}
    else:
        monkeypatch.setattr(migrations, "REVISIONS", REVISIONS[: REVISIONS.index(revision) + 1])
        monkeypatch.setattr(migrations, "HEAD", revision)
        monkeypatch.setattr(fingerprints, "REVISIONS", migrations.REVISIONS)
        goes_on = all(" go on" in item for item in promised)
        assert is_ready(program) is goes_on
    program.close()
    migrating.close()
