"""Sign-ins that wait go with the person who proved something for them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_NAME = "fk_authorization_requests_user_id"


def upgrade() -> None:
    """A reference to the user, who may be gone by now, and what finds all that wait for one."""
    op.execute(
        "DELETE FROM authorization_requests WHERE user_id IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = authorization_requests.user_id)"
    )
    # SQLite cannot add a reference to a table that is there, so there the table is copied.
    with op.batch_alter_table("authorization_requests") as requests:
        requests.create_foreign_key(_NAME, "users", ["user_id"], ["id"], ondelete="CASCADE")
        requests.create_index(
            "ix_authorization_requests_user_id",
            ["user_id"],
            sqlite_where=sa.text("user_id IS NOT NULL"),
            postgresql_where=sa.text("user_id IS NOT NULL"),
        )
