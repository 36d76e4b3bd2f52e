"""Applications choose the algorithms of signed authorization and introspection responses."""

from alembic import op

revision = "0049"
down_revision = "0048"
oldest = "0006"

_WORD = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}


def upgrade() -> None:
    """Programs before sign both by the algorithm of ID tokens."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for column in ("authorization_signed_response_alg", "introspection_signed_response_alg"):
        op.execute(f"ALTER TABLE applications ADD COLUMN {again}{column} {_WORD[dialect]}")
