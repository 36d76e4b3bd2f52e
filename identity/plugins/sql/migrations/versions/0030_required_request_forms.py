"""Applications can be required to push and sign authorization requests, and to ask for signed responses."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
oldest = "0006"

_COLUMNS = ("require_pushed_authorization_requests", "require_signed_request_object", "require_encoded_response")


def upgrade() -> None:
    """Programs before require nothing."""
    again = True if op.get_context().dialect.name != "sqlite" else None
    for name in _COLUMNS:
        column: sa.Column[bool] = sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
        op.add_column("applications", column, if_not_exists=again)
