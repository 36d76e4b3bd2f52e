"""Applications can know users by pairwise identifiers."""

from alembic import op

revision = "0048"
down_revision = "0047"
oldest = "0006"

_WORD = {
    "sqlite": "TEXT NOT NULL DEFAULT 'public'",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT 'public'",
    "mariadb": "VARCHAR(64) NOT NULL DEFAULT 'public'",
}
_TEXT = {
    "sqlite": "TEXT NOT NULL DEFAULT ''",
    "postgresql": "TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    "mariadb": "LONGTEXT NOT NULL DEFAULT ('')",
}


def upgrade() -> None:
    """Programs before issue public identifiers to every application. So choose pairwise ones when all are gone."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    op.execute(f"ALTER TABLE applications ADD COLUMN {again}subject_type {_WORD[dialect]}")
    op.execute(f"ALTER TABLE applications ADD COLUMN {again}sector_identifier_uri {_TEXT[dialect]}")
