"""Clients choose the algorithm of their tokens; keys of an algorithm that is switched off retire."""

from alembic import op

revision = "0035"
down_revision = "0034"
oldest = "0006"

_WORD = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}
_COLUMNS = (
    ("applications", "id_token_signed_response_alg"),
    ("applications", "userinfo_signed_response_alg"),
    ("users", "id_token_signed_response_alg"),
)


def upgrade() -> None:
    """Programs before sign everything with the newest key. So another algorithm is switched on when all are gone."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for table, column in _COLUMNS:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {again}{column} {_WORD[dialect]}")
    op.execute(f"ALTER TABLE signing_keys ADD COLUMN {again}retired_at BIGINT")
