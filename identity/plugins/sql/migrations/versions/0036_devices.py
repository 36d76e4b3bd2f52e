"""Tokens of a device are known with the network address that the device had."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}


def upgrade() -> None:
    """Programs before store devices as any sign-in."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(sa.text(f"ALTER TABLE token_families ADD COLUMN {again}device_address {_TEXT[dialect]}"))
