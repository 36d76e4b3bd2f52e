"""Sessions and sign-ins hold proofs, each with its factor and moment, in place of methods."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
oldest = "0004"

#: As proofs_text of codecs.py writes them; the methods are JSON already.
_FILL = """UPDATE sessions SET proofs = '[["password", ' || methods || ', ' || authenticated_at || ']]'"""


def upgrade() -> None:
    """All nodes stop for it: the version before reads the column that goes."""
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    for table in ("sessions", "authorization_requests"):
        op.add_column(table, sa.Column("proofs", text, nullable=False, server_default="[]"))
    op.execute(_FILL)
    for table in ("sessions", "authorization_requests"):
        op.drop_column(table, "methods")
    op.add_column("token_families", sa.Column("authenticated_at", sa.BigInteger()))
    op.add_column("token_families", sa.Column("acr", text, nullable=False, server_default=""))
