"""Copying everything from one database to another."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, create_engine, text

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.migrations import HEAD, REVISIONS
from identity.plugins.sql.migrations.mariadb import BEGINS_WITH
from identity.plugins.sql.tables import metadata
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.dump import Cell, StorageDump, TableRows
from identity.storage.errors import StorageUnavailable
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

#: Tables with at most one row.
ONE_ROW = {"instance", "audit_floor"}

Contents = dict[str, list[dict[str, Cell]]]


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.thorough)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlBackend]:
    """A database without a schema."""
    server: PostgresqlServer | None = None
    url = f"sqlite:///{tmp_path}/target.db"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        url = new_database(server)
    if request.param == "mariadb":
        from identity.testing import mariadb

        url = mariadb.new_database(request.getfixturevalue("mariadb_server"))
    backend = SqlBackend(SqlPluginSettings(url=url))
    yield backend
    backend.close()
    if server is not None:
        drop_database(server, url)


def fill(url: str, times: int = 1) -> None:
    """Insert rows into every table, with the same text everywhere so that references match."""
    engine = create_engine(SqlPluginSettings(url=url).database_url())
    with engine.begin() as connection:
        for number in range(times):
            for table in metadata.sorted_tables:
                if number and table.name in ONE_ROW:
                    continue
                row = {column.name: _cell(column, number) for column in table.columns if column.name != "sequence"}
                # A mapping belongs to a provider or a directory, a federated credential to a user or an application.
                row |= dict.fromkeys(row.keys() & {"directory"})
                if table.name == "federated_credentials":
                    row["application_id"] = None
                connection.execute(table.insert(), row)
    engine.dispose()


def _cell(column: Column[Any], number: int) -> Cell:
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, LargeBinary):
        return b"\x00\xff[1]" + bytes([number])
    if isinstance(column.type, (BigInteger, Integer)):
        return number + 1 if isinstance(column.type, Integer) and not isinstance(column.type, BigInteger) else 2**40
    return f'["Ünïcode"\n\\, {number}'


def contents(dump: StorageDump) -> Contents:
    found = {part.table: [dict(zip(part.columns, row, strict=True)) for row in part.rows] for part in dump.tables}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def holds_nothing(backend: SqlBackend) -> bool:
    """True without a schema or with an empty one: MariaDB commits each schema change implicitly."""
    try:
        with backend.dump() as dump:
            return not any(contents(dump).values())
    except StorageUnavailable as problem:
        return "identity migrate" in str(problem)


@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=4)
def test_dump_and_restore_round_trip_every_table(url: str, backend: SqlBackend, target: SqlBackend) -> None:
    fill(url, 3)
    with backend.dump() as dump:
        target.restore(dump)
    target.check()
    with backend.dump() as before, target.dump() as after:
        expected = contents(before)
        assert list(expected) == [table.name for table in metadata.sorted_tables]
        assert all(len(rows) == (1 if name in ONE_ROW else 3) for name, rows in expected.items())
        assert contents(after) == expected


def test_event_numbers_are_not_reused(backend: SqlBackend, target: SqlBackend) -> None:
    with backend.dump() as dump:
        target.restore(replace(dump, sequence_numbers={"audit_events": 41}))
    with committed_transaction(target, ContractTransactionManager()) as storage:
        storage.audit.append(make.audit_event())
        assert [event.sequence for event in storage.audit.list_after(0, 10)] == [42]
    with target.dump() as dump:
        assert dump.sequence_numbers == {"audit_events": 42}


def test_dump_excludes_concurrent_writes(url: str, backend: SqlBackend) -> None:
    fill(url)
    with backend.dump() as dump:
        with committed_transaction(backend, ContractTransactionManager()) as storage:
            storage.organizations.add(make.organization())
            storage.audit.append(make.audit_event())
        assert {name: len(rows) for name, rows in contents(dump).items()} == dict.fromkeys(metadata.tables, 1)
    with backend.dump() as dump:
        assert len(contents(dump)["organizations"]) == 2


def test_restore_refuses_a_filled_database(url: str, backend: SqlBackend) -> None:
    fill(url)
    with backend.dump() as dump:
        before = contents(dump)
    with (
        backend.dump() as dump,
        pytest.raises(StorageUnavailable, match="The database is not empty: there are rows in"),
    ):
        backend.restore(dump)
    with backend.dump() as dump:
        assert contents(dump) == before


@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=4)
def test_empty_database_with_a_schema_is_filled(backend: SqlBackend, target: SqlBackend) -> None:
    target.migrate()
    with backend.dump() as dump:
        target.restore(dump)
    target.check()


@pytest.mark.thorough
@pytest.mark.sampled(1, thorough=4)
def test_failed_restore_leaves_nothing(url: str, backend: SqlBackend, target: SqlBackend) -> None:
    fill(url)

    def broken(parts: Iterator[TableRows]) -> Iterator[TableRows]:
        for part in parts:
            yield part
            if part.table == "users":
                raise RuntimeError("the disk is gone")

    with backend.dump() as dump, pytest.raises(RuntimeError, match="the disk is gone"):
        target.restore(replace(dump, tables=broken(iter(dump.tables))))
    assert holds_nothing(target)
    with backend.dump() as dump:
        target.restore(dump)


@pytest.mark.sampled(11, thorough=11)
@pytest.mark.parametrize("revision", REVISIONS)
def test_backup_of_an_older_version_is_restored_and_migrated(target: SqlBackend, revision: str) -> None:
    organization = {
        "id": "o",
        "name": "O",
        "primary_domain": "o.example",
        "created_at": 1,
        "changed_at": 1,
        "registration": False,
        "active": True,
        "version": 1,
        "name_key": "o",
        "search_text": "o",
    }
    part = TableRows("organizations", list(organization), [list(organization.values())])
    dump = StorageDump(revision, {}, [part])
    if str(target._settings.url).startswith("mariadb") and revision < BEGINS_WITH:
        with pytest.raises(StorageUnavailable, match=f"first schema is {BEGINS_WITH}"):
            target.restore(dump)
        return
    target.restore(dump)
    target.check()
    with target.read_session() as storage:
        found = storage.organizations.find("o")
    assert found is not None
    assert found.name == "O"


def test_newer_backup_is_refused(target: SqlBackend) -> None:
    with pytest.raises(StorageUnavailable, match="newer than this version"):
        target.restore(StorageDump("9999", {}, []))


def test_database_of_another_revision_is_not_filled(target: SqlBackend) -> None:
    target.migrate()
    with pytest.raises(StorageUnavailable, match=f"schema \\({HEAD}\\) and the backup is of an older one \\(0001\\)"):
        target.restore(StorageDump("0001", {}, []))


@pytest.mark.parametrize(
    "part", [TableRows("alembic_version", ["version_num"], []), TableRows("users", ["id", "x"], [])]
)
def test_mismatching_table_is_refused(target: SqlBackend, part: TableRows) -> None:
    with pytest.raises(StorageUnavailable, match="does not fit its schema"):
        target.restore(StorageDump(HEAD, {}, [part]))
    assert holds_nothing(target)


def test_invalid_text_error_names_its_table(url: str, backend: SqlBackend) -> None:
    if not url.startswith("sqlite"):
        pytest.skip("PostgreSQL stores no such text")
    fill(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE users SET description = CAST(x'ff' AS TEXT)"))
    engine.dispose()
    with backend.dump() as dump, pytest.raises(StorageUnavailable, match="The table users cannot be read"):
        contents(dump)
