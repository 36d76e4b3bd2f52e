"""Sessions and families of tokens remember the manager who is signed in as their user."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0022"
down_revision = "0021"
oldest = "0006"

_INDEX = "ix_sessions_impersonator_id"


def upgrade() -> None:
    """Programs before take such a session for one without proofs, which signs nobody in."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    word = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}[dialect]
    for table in ("sessions", "token_families"):
        op.execute(f"ALTER TABLE {table} ADD COLUMN {again}impersonator_id {word}")
    if dialect == "mariadb":
        op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON sessions (impersonator_id)")
    else:
        add_index(_INDEX, "sessions", ["impersonator_id"], where="impersonator_id IS NOT NULL")
