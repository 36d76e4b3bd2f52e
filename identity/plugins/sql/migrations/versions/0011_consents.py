"""Applications ask for consent, and people give it."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """A new table, and in applications what the version before need not know."""
    op.add_column("applications", sa.Column("consent", STRING, nullable=False, server_default="when_foreign"))
    op.add_column("applications", sa.Column("may_manage", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "consents",
        sa.Column("user_id", STRING, nullable=False),
        sa.Column("application_id", STRING, nullable=False),
        sa.Column("scope", STRING, nullable=False),
        sa.Column("given_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_consents_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_consents_application_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "application_id", name="pk_consents"),
    )
    op.create_index("ix_consents_application_id", "consents", ["application_id"])
