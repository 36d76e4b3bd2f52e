"""Applications have public keys, or the address of them; service users an address, too."""

from alembic import op

revision = "0037"
down_revision = "0036"
oldest = "0006"

_TEXT = {
    "sqlite": "TEXT NOT NULL DEFAULT ''",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    "mariadb": "LONGTEXT NOT NULL DEFAULT ('')",
}


def upgrade() -> None:
    """Programs before authenticate no application with keys, and write rows without them."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for column in ("jwks", "jwks_uri", "token_endpoint_auth_signing_alg"):
        op.execute(f"ALTER TABLE applications ADD COLUMN {again}{column} {_TEXT[dialect]}")
    op.execute(f"ALTER TABLE users ADD COLUMN {again}jwks_uri {_TEXT[dialect]}")
