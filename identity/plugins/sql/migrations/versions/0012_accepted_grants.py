"""Grants of projects are accepted by who holds them."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """What the version before need not know; grants from which roles were given count as accepted."""
    op.add_column("project_grants", sa.Column("accepted", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(
        "UPDATE project_grants SET accepted = (1 = 1) WHERE id IN"
        " (SELECT project_grant_id FROM user_grants WHERE project_grant_id IS NOT NULL)"
    )
