"""Applications can have addresses that are told of the end of sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}


def upgrade() -> None:
    """Programs before tell nobody."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for column in ("backchannel_logout_uri", "frontchannel_logout_uri"):
        op.execute(sa.text(f"ALTER TABLE applications ADD COLUMN {again}{column} {_TEXT[dialect]} NOT NULL DEFAULT ''"))
