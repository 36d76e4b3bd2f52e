"""User grants, project grants and manager roles may end by themselves."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0018"
down_revision = "0017"
oldest = "0006"

_TABLES = ("user_grants", "project_grants", "managers")


def upgrade() -> None:
    """Programs before ignore ends: nothing should get one before all of them have been replaced."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {again}until BIGINT")
        if dialect == "mariadb":
            op.execute(f"CREATE INDEX IF NOT EXISTS ix_{table}_until_id ON {table} (until, id)")
    if dialect != "mariadb":
        for table in _TABLES:
            add_index(f"ix_{table}_until_id", table, ["until", "id"], where="until IS NOT NULL")
