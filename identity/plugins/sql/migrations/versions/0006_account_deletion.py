"""When an account is deleted, as its person asked for."""

import sqlalchemy as sa
from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0006"
down_revision = "0005"
oldest = "0004"


def upgrade() -> None:
    """The version before goes on without it."""
    again = op.get_context().dialect.name == "postgresql"
    op.add_column("users", sa.Column("deletion_at", sa.BigInteger(), nullable=True), if_not_exists=again)
    add_index("ix_users_deletion_at", "users", ["deletion_at", "id"], where="deletion_at IS NOT NULL")
