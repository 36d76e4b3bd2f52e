"""Applications record how they came to be, and projects can be open to those that no manager created."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
oldest = "0006"

_ORIGIN = {
    "sqlite": "TEXT NOT NULL DEFAULT 'manager'",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT 'manager'",
    "mariadb": "LONGTEXT NOT NULL DEFAULT ('manager')",
}


def upgrade() -> None:
    """Programs before create applications for managers alone, and projects that are not open."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE applications ADD COLUMN {again}origin {_ORIGIN[dialect]}")
    column: sa.Column[bool] = sa.Column(
        "open_to_dynamic_clients", sa.Boolean(), nullable=False, server_default=sa.false()
    )
    op.add_column("projects", column, if_not_exists=True if dialect != "sqlite" else None)
