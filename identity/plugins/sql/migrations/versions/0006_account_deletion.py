"""When an account is deleted, as its person asked for."""

import sqlalchemy as sa
from alembic import op

from identity.plugins.sql.codecs import Moment

revision = "0006"
down_revision = "0005"
oldest = "0004"


def upgrade() -> None:
    """The version before goes on without it."""
    op.add_column("users", sa.Column("deletion_at", Moment(), nullable=True))
    op.create_index(
        "ix_users_deletion_at",
        "users",
        ["deletion_at", "id"],
        sqlite_where=sa.text("deletion_at IS NOT NULL"),
        postgresql_where=sa.text("deletion_at IS NOT NULL"),
    )
