"""Dump and restore of all tables, from one kind of database to another."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Boolean, Column, Connection, Dialect, Engine, Inspector, Table, inspect, text

from identity.plugins.sql import tables
from identity.plugins.sql.column_codecs import SortedText
from identity.plugins.sql.connection import DatabaseConnection
from identity.plugins.sql.errors import DATABASE_ERRORS, translate_error, translating
from identity.plugins.sql.migrations import MIGRATE_HINT
from identity.plugins.sql.migrations.runner import acquire_migration_lock, read_verified_revision, upgrade
from identity.storage.dump import Cell, StorageDump, TableRows
from identity.storage.errors import StorageUnavailable

_BATCH_SIZE = 1000

#: The table whose numbers are never reused, and the last number assigned, even to a deleted row.
_SEQUENCE_TABLE = "audit_events"
_SELECT_LAST_NUMBER = {
    "sqlite": "SELECT seq FROM sqlite_sequence WHERE name = 'audit_events'",
    "postgresql": "SELECT last_value FROM audit_events_sequence_seq WHERE is_called",
    "mariadb": (
        "SELECT AUTO_INCREMENT - 1 FROM information_schema.tables"
        " WHERE table_schema = DATABASE() AND table_name = 'audit_events'"
    ),
}
_SET_LAST_NUMBER = {
    "sqlite": (
        "DELETE FROM sqlite_sequence WHERE name = 'audit_events'",
        "INSERT INTO sqlite_sequence (name, seq) VALUES ('audit_events', :last)",
    ),
    "postgresql": ("SELECT setval('audit_events_sequence_seq', :last)",),
    "mariadb": ("ALTER TABLE audit_events AUTO_INCREMENT = :next",),
}


def dump_tables(connection: DatabaseConnection) -> StorageDump:
    """What this connection sees, read lazily. Raises StorageUnavailable."""
    core = connection.core
    with translating():
        revision = read_verified_revision(core)
        if revision is None:
            raise StorageUnavailable(f"The database has no schema yet. {MIGRATE_HINT}")
        last = core.execute(text(_SELECT_LAST_NUMBER[connection.dialect.name])).scalar()
        inspector: Inspector = inspect(core)
        existing = set(inspector.get_table_names())
        columns = {
            table: [column for column in table.columns if column.name in _insertable_columns(inspector, table.name)]
            for table in tables.metadata.sorted_tables
            if table.name in existing
        }
    parts = (
        TableRows(table.name, [column.name for column in chosen], _read_rows(core, table, chosen))
        for table, chosen in columns.items()
    )
    return StorageDump(revision, {_SEQUENCE_TABLE: last or 0}, parts)


def restore_tables(engine: Engine, dump: StorageDump) -> None:
    """Fill an empty database. Raises StorageUnavailable, SQLAlchemyError, and exceptions of the dump; then nothing was
    changed."""
    with engine.begin() as connection:
        acquire_migration_lock(connection)
        _require_empty(connection)
        stored = read_verified_revision(connection)
        # A failed restore may have left an older schema, where schema changes are not rolled back.
        if stored is not None and stored > dump.schema_revision:
            raise StorageUnavailable(
                f"The database has a schema ({stored}) and the backup is of an older one ({dump.schema_revision})."
                " Restore into a database that was not migrated: the restore makes the schema that fits, and migrates"
                " it."
            )
        upgrade(connection, dump.schema_revision)
        for part in dump.tables:
            _insert_rows(connection, part)
        last = dump.sequence_numbers.get(_SEQUENCE_TABLE, 0)
        for statement in _SET_LAST_NUMBER[connection.dialect.name] if last else ():
            values = {name: number for name, number in (("last", last), ("next", last + 1)) if f":{name}" in statement}
            connection.execute(text(statement), values)
        upgrade(connection)


def _insertable_columns(inspector: Inspector, table: str) -> set[str]:
    return {column["name"] for column in inspector.get_columns(table)}


def _read_rows(connection: Connection, table: Table, columns: Sequence[Column[Any]]) -> Iterator[Sequence[Cell]]:
    """Rows in a portable form. SQLite and MariaDB return booleans as numbers, and MariaDB some texts as bytes."""
    names = _quote_names(connection.dialect, [column.name for column in columns])
    flags = [at for at, column in enumerate(columns) if isinstance(column.type, Boolean)]
    texts = [at for at, column in enumerate(columns) if column.type is SortedText]
    statement = text(f"SELECT {', '.join(names)} FROM {table.name}")  # noqa: S608 - names of our own
    try:
        found = connection.execute(statement, execution_options={"stream_results": True})
        for batch in found.partitions(_BATCH_SIZE):
            for row in batch:
                cells = list(row)
                for at in flags:
                    cells[at] = None if cells[at] is None else bool(cells[at])
                for at in texts:
                    cells[at] = cells[at].decode() if isinstance(cells[at], bytes) else cells[at]
                yield cells
    except DATABASE_ERRORS as error:
        raise StorageUnavailable(f"The table {table.name} cannot be read. {translate_error(error)}") from error


def _require_empty(connection: Connection) -> None:
    existing = set(inspect(connection).get_table_names())
    for name in tables.metadata.tables:
        if name in existing and connection.execute(text(f"SELECT 1 FROM {name} LIMIT 1")).first():  # noqa: S608
            raise StorageUnavailable(
                f"The database is not empty: there are rows in {name}. Restore into a new one, and let"
                " identity.plugin.sql.url name that."
            )


def _insert_rows(connection: Connection, part: TableRows) -> None:
    known = part.table in tables.metadata.tables
    if not known or not _insertable_columns(inspect(connection), part.table).issuperset(part.columns):
        raise StorageUnavailable(f"The backup has a table {part.table} that does not fit its schema.")
    names = ", ".join(_quote_names(connection.dialect, part.columns))
    parameters = [f"c{at}" for at in range(len(part.columns))]
    # Identity columns keep the numbers of the backup.
    override = "OVERRIDING SYSTEM VALUE " if connection.dialect.name == "postgresql" else ""
    statement = text(
        f"INSERT INTO {part.table} ({names}) {override}VALUES ({', '.join(f':{name}' for name in parameters)})"
    )
    rows = iter(part.rows)
    while batch := [dict(zip(parameters, row, strict=True)) for row in islice(rows, _BATCH_SIZE)]:
        connection.execute(statement, batch)


def _quote_names(dialect: Dialect, names: Sequence[str]) -> list[str]:
    return [dialect.identifier_preparer.quote(name) for name in names]
