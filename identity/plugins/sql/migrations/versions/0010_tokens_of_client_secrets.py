"""Tokens that an application got for itself end with the secret that it showed."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0010"
down_revision = "0009"
oldest = "0006"

_REFERENCES = "REFERENCES client_secrets (id) ON DELETE CASCADE"
_NAME = "fk_access_tokens_client_secret_id"
#: Beside the column, so that the rows that are there need not be looked at for the reference.
_COLUMN = f"client_secret_id TEXT CONSTRAINT {_NAME} {_REFERENCES}"
_INDEX = "ix_access_tokens_client_secret_id"
_STATEMENTS = {
    "postgresql": (f"ALTER TABLE access_tokens ADD COLUMN IF NOT EXISTS {_COLUMN}",),
    "sqlite": (f"ALTER TABLE access_tokens ADD COLUMN {_COLUMN}",),
    "mariadb": (
        "ALTER TABLE access_tokens ADD COLUMN IF NOT EXISTS client_secret_id VARCHAR(64)",
        f"CREATE INDEX IF NOT EXISTS {_INDEX} ON access_tokens (client_secret_id)",
        f"""
        ALTER TABLE access_tokens
        ADD CONSTRAINT {_NAME} FOREIGN KEY IF NOT EXISTS (client_secret_id) {_REFERENCES}
        """,
    ),
}


def upgrade() -> None:
    """Programs before issue tokens that say nothing of it; these live on to their end."""
    dialect = op.get_context().dialect.name
    for statement in _STATEMENTS[dialect]:
        op.execute(statement)
    if dialect != "mariadb":
        add_index(_INDEX, "access_tokens", ["client_secret_id"], where="client_secret_id IS NOT NULL")
