"""Applications register the addresses of signed authorization requests."""

from alembic import op

revision = "0050"
down_revision = "0049"
oldest = "0006"

_TEXTS = {
    "sqlite": "TEXT NOT NULL DEFAULT '[]'",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT '[]'",
    "mariadb": "LONGTEXT NOT NULL DEFAULT ('[]')",
}


def upgrade() -> None:
    """Programs before fetch no requests."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE applications ADD COLUMN {again}request_uris {_TEXTS[dialect]}")
