"""Tokens that an application got for itself end with the secret that it showed."""

from alembic import op

revision = "0010"
down_revision = "0009"
oldest = "0006"

_REFERENCES = "REFERENCES client_secrets (id) ON DELETE CASCADE"
_NAME = "fk_access_tokens_client_secret_id"
#: Beside the column, so that the rows that are there need not be looked at for the reference.
_COLUMN = f"ALTER TABLE access_tokens ADD COLUMN client_secret_id TEXT CONSTRAINT {_NAME} {_REFERENCES}"
_INDEX = """
CREATE INDEX ix_access_tokens_client_secret_id ON access_tokens (client_secret_id) WHERE client_secret_id IS NOT NULL
"""
_STATEMENTS = {
    "postgresql": (_COLUMN, _INDEX),
    "sqlite": (_COLUMN, _INDEX),
    "mariadb": (
        "ALTER TABLE access_tokens ADD COLUMN IF NOT EXISTS client_secret_id VARCHAR(64)",
        "CREATE INDEX IF NOT EXISTS ix_access_tokens_client_secret_id ON access_tokens (client_secret_id)",
        f"""
        ALTER TABLE access_tokens
        ADD CONSTRAINT {_NAME} FOREIGN KEY IF NOT EXISTS (client_secret_id) {_REFERENCES}
        """,
    ),
}


def upgrade() -> None:
    """Programs before issue tokens that say nothing of it; these live on to their end."""
    for statement in _STATEMENTS[op.get_context().dialect.name]:
        op.execute(statement)
