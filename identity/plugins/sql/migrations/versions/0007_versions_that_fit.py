"""The schema tells which versions can work with it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
oldest = "0006"


def upgrade() -> None:
    """Beside the revision, which the version before reads alone."""
    op.add_column("alembic_version", sa.Column("oldest", sa.String(32)))
