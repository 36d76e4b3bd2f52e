"""All that a revision may import of ours. It never changes, as revisions do not (``hashes.py``)."""

from alembic import op

#: What constraints and indexes are called that a revision does not name.
NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}


def add_index(name: str, table: str, columns: list[str], *, where: str) -> None:
    """Make a partial index of a table that is there already (SQLite, PostgreSQL).

    PostgreSQL reads the table while others write. It does so outside any transaction: what the revision did before is
    there from then on, and what a run left that was killed is made anew by the next one.
    """
    context = op.get_context()
    if context.dialect.name != "postgresql" or not context.opts["transaction_per_migration"]:
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
