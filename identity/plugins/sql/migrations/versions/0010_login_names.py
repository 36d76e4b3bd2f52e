"""People have a name since a moment, and some have made their account themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Whoever registered and has not proved an address gets a bare name once they do."""
    op.add_column("users", sa.Column("registered", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("users", sa.Column("named_at", sa.BigInteger(), nullable=True))
    registered = "SELECT object_id FROM audit_events WHERE event = 'user.registered'"
    op.execute(sa.text(f"UPDATE users SET registered = :yes WHERE id IN ({registered})").bindparams(yes=True))  # noqa: S608
    verified = sa.text(
        "UPDATE users SET named_at = created_at"
        " WHERE profile IS NOT NULL AND (NOT registered OR profile LIKE :verified)"
    )
    op.execute(verified.bindparams(verified='%"email_verified": true%'))
