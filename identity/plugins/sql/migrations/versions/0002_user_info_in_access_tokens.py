"""Access tokens can carry what userinfo tells."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
oldest = "0001"


def upgrade() -> None:
    """What the version before need not know."""
    wanted = "access_token_userinfo_assertion"
    op.add_column("applications", sa.Column(wanted, sa.Boolean(), nullable=False, server_default=sa.false()))
