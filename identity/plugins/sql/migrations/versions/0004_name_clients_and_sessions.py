"""Audit events name clients and sessions; answers that are kept hold no secrets."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """New columns, and an end to answers that the version before kept whole: some hold what is shown once."""
    op.add_column("audit_events", sa.Column("client_id", STRING, nullable=True))
    op.add_column("audit_events", sa.Column("session_id", STRING, nullable=True))
    op.execute(sa.text("UPDATE idempotency_records SET status = 0, sealed = :nothing").bindparams(nothing=b""))
