"""Codes, tokens and refresh tokens can be bound to a key of their client, and applications can require that."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}
_COLUMNS = (
    ("authorization_codes", "confirmation"),
    ("access_tokens", "confirmation"),
    ("refresh_tokens", "confirmation"),
    ("applications", "required_sender_constraint"),
)


def upgrade() -> None:
    """Programs before bind nothing. They must not run beside this revision once a plugin binds tokens: to them, each
    token is a bearer token."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for table, column in _COLUMNS:
        op.execute(sa.text(f"ALTER TABLE {table} ADD COLUMN {again}{column} {_TEXT[dialect]}"))
