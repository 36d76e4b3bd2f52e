"""A service user's key is bound to an algorithm."""

from alembic import op

revision = "0032"
down_revision = "0031"
oldest = "0006"

_WORD = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}


def upgrade() -> None:
    """Programs before add keys for RS256, and refuse assertions by any other."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE service_user_keys ADD COLUMN {again}algorithm {_WORD[dialect]} NOT NULL DEFAULT 'RS256'")
