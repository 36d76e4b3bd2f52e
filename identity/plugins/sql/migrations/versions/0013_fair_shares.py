"""Organizations take turns in the outbox; each change of rules moves a version that is read with every subject."""

from alembic import op

revision = "0013"
down_revision = "0012"
oldest = "0006"

_COLUMNS = {
    "outgoing_messages": ("organization_id {text}", "bulk BOOLEAN NOT NULL DEFAULT false"),
    "instance": ("rules_version INTEGER NOT NULL DEFAULT 0",),
}
_TEXT = {"sqlite": "TEXT", "postgresql": "TEXT", "mariadb": "VARCHAR(64)"}


def upgrade() -> None:
    """Programs before write neither: what they send is of no organization."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ADD COLUMN {again}{column.format(text=_TEXT[dialect])}")
    # Few wait at a time, so nobody is held up for long.
    op.execute(
        "CREATE INDEX IF NOT EXISTS ix_outgoing_messages_lanes"
        " ON outgoing_messages (kind, bulk, organization_id, next_at, id, expires_at)"
    )
