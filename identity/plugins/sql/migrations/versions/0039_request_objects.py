"""Applications can choose the algorithm of the authorization requests that they sign."""

from alembic import op

revision = "0039"
down_revision = "0038"
oldest = "0006"

_TEXT = {
    "sqlite": "TEXT NOT NULL DEFAULT ''",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    "mariadb": "LONGTEXT NOT NULL DEFAULT ('')",
}


def upgrade() -> None:
    """Programs before accept no signed requests."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE applications ADD COLUMN {again}request_object_signing_alg {_TEXT[dialect]}")
