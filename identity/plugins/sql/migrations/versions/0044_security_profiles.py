"""Applications can have a security profile."""

from alembic import op

revision = "0044"
down_revision = "0043"
oldest = "0006"

_WORD = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}


def upgrade() -> None:
    """Programs before ignore the profile. So choose one when all of them are gone."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE applications ADD COLUMN {again}security_profile {_WORD[dialect]}")
