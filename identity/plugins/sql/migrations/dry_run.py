"""What a migration would do, without doing it."""

import re
from io import StringIO

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from sqlalchemy import Connection, Engine, text

from identity.plugins.sql.migrations import HEAD
from identity.plugins.sql.migrations.runner import read_verified_revision, script_directory
from identity.plugins.sql.row_counts import row_count_statement

_TOUCHED = re.compile(r"^(?:ALTER TABLE|UPDATE|DELETE FROM|CREATE (?:UNIQUE )?INDEX .* ON) +\"?(\w+)", re.MULTILINE)
_CREATED_TABLE = re.compile(r"^CREATE TABLE +(?:IF NOT EXISTS +)?(\w+)", re.MULTILINE)


def dry_run_sql(engine: Engine) -> list[str]:
    """The pending statements, line by line, after the row counts of the tables they touch."""
    with engine.connect() as connection:
        stored = read_verified_revision(connection)
        if stored in (None, HEAD):
            return []
        sql = _pending_sql(connection, str(stored))
        sizes = [f"-- {name}: about {_count_rows(connection, name):,} rows" for name in _touched_tables(sql)]
    return [*sizes, *(line for line in sql.splitlines() if line.strip())]


def _pending_sql(connection: Connection, stored: str) -> str:
    script, written = script_directory(), StringIO()

    def steps(_stored: str | tuple[str, ...], _context: MigrationContext) -> list[RevisionStep]:
        return script._upgrade_revs(HEAD, stored)

    with EnvironmentContext(Config(), script, fn=steps, as_sql=True, starting_rev=stored, destination_rev=HEAD) as one:
        one.configure(
            dialect_name=connection.dialect.name,
            output_buffer=written,
            literal_binds=True,
            transaction_per_migration=True,
        )
        one.run_migrations()
    return written.getvalue()


def _touched_tables(sql: str) -> list[str]:
    """The existing tables, each once, except the one that holds the revision."""
    made = {*_CREATED_TABLE.findall(sql), "alembic_version"}
    return [name for name in dict.fromkeys(_TOUCHED.findall(sql)) if name not in made]


def _count_rows(connection: Connection, name: str) -> int:
    return max(0, int(connection.execute(text(row_count_statement(connection.dialect.name, name))).scalar() or 0))
