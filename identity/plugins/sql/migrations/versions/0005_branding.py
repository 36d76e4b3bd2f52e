"""Organizations and applications can look like themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
oldest = "0004"


def upgrade() -> None:
    """What the version before need not know."""
    for table in ("organizations", "applications"):
        op.add_column(table, sa.Column("branded", sa.Boolean(), nullable=False, server_default=sa.false()))
