"""Applications name the certificate with which they authenticate."""

from alembic import op

revision = "0042"
down_revision = "0041"
oldest = "0006"

_TEXT = {
    "sqlite": "TEXT NOT NULL DEFAULT ''",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    "mariadb": "LONGTEXT NOT NULL DEFAULT ('')",
}


def upgrade() -> None:
    """Programs before authenticate no application with a certificate, and write rows without these names."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for name in ("subject_dn", "san_dns", "san_uri", "san_ip", "san_email"):
        op.execute(f"ALTER TABLE applications ADD COLUMN {again}tls_client_auth_{name} {_TEXT[dialect]}")
