"""Domains are proven."""

import sqlalchemy as sa
from alembic import op

from identity.crypto.secrets import new_token

revision = "0008"
down_revision = "0007"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
MOMENT = sa.BigInteger()


def upgrade() -> None:
    """A new table beside those that the version before knows. Domains that counted go on, as ones never proven."""
    domains = op.create_table(
        "domains",
        sa.Column("organization_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("challenge", STRING, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("proof", STRING, nullable=True),
        sa.Column("verified_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("organization_id", "name", name="pk_domains"),
    )
    counting = sa.text("proof IS NOT NULL")
    op.create_index(
        "uq_domains_name", "domains", ["name"], unique=True, sqlite_where=counting, postgresql_where=counting
    )
    organizations = sa.table(
        "organizations", sa.column("id"), sa.column("primary_domain"), sa.column("created_at", MOMENT)
    )
    rows = op.get_bind().execute(sa.select(organizations)).all()
    op.bulk_insert(
        domains,
        [
            {
                "organization_id": row.id,
                "name": row.primary_domain,
                "challenge": new_token(),
                "created_at": row.created_at,
                "proof": "unproven",
                "verified_at": row.created_at,
            }
            for row in rows
        ],
    )
