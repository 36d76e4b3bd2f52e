"""Access tokens name those that they were exchanged from."""

from alembic import op

revision = "0033"
down_revision = "0032"
oldest = "0006"

_TYPES = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}


def upgrade() -> None:
    """Programs before exchange no tokens. They take an exchanged one for live until it expires, or its session or
    family ends."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE access_tokens ADD COLUMN {again}ancestors {_TYPES[dialect]}")
