"""Other identity providers at which people can sign in."""

import sqlalchemy as sa
from alembic import op

from identity.plugins.sql.codecs import Moment, String

revision = "0003"
down_revision = "0002"
oldest = "0001"


def upgrade() -> None:
    """What the version before need not know."""
    op.create_table(
        "upstream_providers",
        sa.Column("id", String, nullable=False),
        sa.Column("organization_id", String, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("kind", String, nullable=False),
        sa.Column("client_id", String, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("changed_at", Moment, nullable=False),
        sa.Column("issuer", String, nullable=False),
        sa.Column("authentication", String, nullable=False),
        sa.Column("team_id", String, nullable=False),
        sa.Column("key_id", String, nullable=False),
        sa.Column("scopes", String, nullable=False),
        sa.Column("claims", String, nullable=False),
        sa.Column("create_accounts", sa.Boolean(), nullable=False),
        sa.Column("trust_email", sa.Boolean(), nullable=False),
        sa.Column("by_domain", sa.Boolean(), nullable=False),
        sa.Column("trust_methods", sa.Boolean(), nullable=False),
        sa.Column("sign_out_there", sa.Boolean(), nullable=False),
        sa.Column("everywhere", sa.Boolean(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("secret_changed_at", Moment, nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("search_text", String, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upstream_providers")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name=op.f("fk_upstream_providers_organization_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        op.f("ix_upstream_providers_organization_id_created_at_id"),
        "upstream_providers",
        ["organization_id", "created_at", "id"],
    )
    op.create_index(
        "ix_upstream_providers_everywhere",
        "upstream_providers",
        ["created_at", "id"],
        sqlite_where=sa.text("everywhere"),
        postgresql_where=sa.text("everywhere"),
    )
