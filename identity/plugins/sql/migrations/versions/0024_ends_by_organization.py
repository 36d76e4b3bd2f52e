"""What ends by itself is found by organization."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0024"
down_revision = "0023"
oldest = "0006"

_INDEXES = (
    ("project_grants", "organization_id"),
    ("project_grants", "project_id"),
    ("user_grants", "organization_id"),
    ("group_members", "organization_id"),
)


def upgrade() -> None:
    """Programs before do not use these indexes."""
    for table, column in _INDEXES:
        name, columns = f"ix_{table}_{column}_until_id", [column, "until", "id"]
        if op.get_context().dialect.name == "mariadb":
            op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({', '.join(columns)})")
        else:
            add_index(name, table, columns, where="until IS NOT NULL")
