"""Identity providers that the instance manages: the only ones at which holders of its roles sign in."""

from alembic import op

revision = "0012"
down_revision = "0011"
oldest = "0006"

_COLUMN = "instance_managed BOOLEAN DEFAULT FALSE NOT NULL"
_STATEMENTS = {
    "postgresql": f"ALTER TABLE upstream_providers ADD COLUMN IF NOT EXISTS {_COLUMN}",
    "sqlite": f"ALTER TABLE upstream_providers ADD COLUMN {_COLUMN}",
    "mariadb": f"ALTER TABLE upstream_providers ADD COLUMN IF NOT EXISTS {_COLUMN}",
}


def upgrade() -> None:
    """Those that are there are their organizations'; programs before write rows without it."""
    op.execute(_STATEMENTS[op.get_context().dialect.name])
