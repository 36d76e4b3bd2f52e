"""Other identity providers at which people can sign in."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
oldest = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """What the version before need not know."""
    op.create_table(
        "upstream_providers",
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("organization_id", _TEXT, nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("kind", _TEXT, nullable=False),
        sa.Column("client_id", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("issuer", _TEXT, nullable=False),
        sa.Column("authentication", _TEXT, nullable=False),
        sa.Column("team_id", _TEXT, nullable=False),
        sa.Column("key_id", _TEXT, nullable=False),
        sa.Column("scopes", _TEXT, nullable=False),
        sa.Column("claims", _TEXT, nullable=False),
        sa.Column("create_accounts", sa.Boolean(), nullable=False),
        sa.Column("trust_email", sa.Boolean(), nullable=False),
        sa.Column("by_domain", sa.Boolean(), nullable=False),
        sa.Column("trust_methods", sa.Boolean(), nullable=False),
        sa.Column("sign_out_there", sa.Boolean(), nullable=False),
        sa.Column("everywhere", sa.Boolean(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("secret_changed_at", sa.BigInteger(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("search_text", _TEXT, nullable=False),
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
