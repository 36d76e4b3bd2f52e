"""Indexes of tables that are there already, made so that nobody waits for them."""

from alembic import op

from identity.plugins.sql.settings import POSTGRESQL


def add_index(name: str, table: str, columns: list[str], *, where: str) -> None:
    """Make a partial index (SQLite, PostgreSQL).

    PostgreSQL reads the table while others write. It does so outside any transaction: what the revision did before is
    there from then on, and what a run left that was killed is made anew by the next one.
    """
    context = op.get_context()
    if context.dialect.name != POSTGRESQL or not context.opts["transaction_per_migration"]:
        op.execute(f"CREATE INDEX {name} ON {table} ({', '.join(columns)}) WHERE {where}")
        return
    with context.autocommit_block():
        # It waits for all who may still see the table without it, and nobody waits behind it.
        op.execute("SET lock_timeout = 0")
        try:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {table} ({', '.join(columns)}) WHERE {where}")
        finally:
            op.execute("RESET lock_timeout")
