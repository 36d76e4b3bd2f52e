"""A family of tokens knows how its person proved to be it, and which single claims were asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Of families that began before, nothing is told."""
    for name in ("methods", "userinfo_claims", "id_token_claims"):
        op.add_column("token_families", sa.Column(name, STRING, nullable=False, server_default=""))
