"""Messages in the outbox remember why the last attempt failed."""

from alembic import op

revision = "0020"
down_revision = "0019"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "TEXT"}


def upgrade() -> None:
    """Programs before write rows without it."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE outgoing_messages ADD COLUMN {again}last_answer {_TEXT[dialect]}")
