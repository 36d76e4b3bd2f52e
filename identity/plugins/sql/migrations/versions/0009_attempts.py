"""Failures are forgotten alike."""

import sqlalchemy as sa
from alembic import op

from identity.domain.attempts import MOST_ATTEMPTS, NEVER

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """All after the same time, whoever's they are; but for those after which there is no next attempt."""
    op.drop_index("ix_attempts_counted_at", "attempts")
    op.create_index("ix_attempts_counted_at", "attempts", ["counted_at"])
    attempts = sa.table("attempts", sa.column("key"), sa.column("number"), sa.column("next_at"))
    op.execute(
        attempts.update()
        .where(attempts.c.key.startswith("user:") | attempts.c.key.startswith("name:"))
        .where(attempts.c.number >= MOST_ATTEMPTS)
        .values(next_at=int(NEVER.timestamp()))
    )
