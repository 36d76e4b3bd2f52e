"""Mappings belong to an identity provider or to a directory."""

from collections.abc import Iterator

from alembic import op

revision = "0029"
down_revision = "0028"
oldest = "0006"

_TABLES = ("group_mappings", "attribute_mappings")
_RULE = "(provider_id IS NULL) <> (directory IS NULL)"


def _statements(dialect: str, table: str) -> Iterator[str]:
    rule = f"CONSTRAINT ck_{table}_source CHECK ({_RULE})"
    if dialect == "postgresql":
        yield f"ALTER TABLE {table} ALTER COLUMN provider_id DROP NOT NULL"
        yield f'ALTER TABLE {table} ADD COLUMN IF NOT EXISTS directory TEXT COLLATE "C" {rule}'
    elif dialect == "mariadb":
        yield f"ALTER TABLE {table} MODIFY provider_id VARCHAR(64)"
        yield f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS directory VARCHAR(64)"
        yield f"ALTER TABLE {table} ADD CONSTRAINT IF NOT EXISTS ck_{table}_source CHECK ({_RULE})"
    else:
        yield f"ALTER TABLE {table} ADD COLUMN directory TEXT {rule}"


def upgrade() -> None:
    """Programs before list no mapping of a directory, and answer 404 for the mappings of a group that has one."""
    dialect = op.get_context().dialect.name
    if dialect == "sqlite":
        _drop_not_null_on_sqlite()
    for table in _TABLES:
        for statement in _statements(dialect, table):
            op.execute(statement)
    name = "ix_group_mappings_directory_organization_id_created_at_id"
    op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON group_mappings (directory, organization_id, created_at, id)")
    op.execute(
        "CREATE UNIQUE INDEX IF NOT EXISTS uq_attribute_mappings_directory"
        " ON attribute_mappings (directory, attribute_id)"
    )


def _drop_not_null_on_sqlite() -> None:
    """SQLite cannot change a column. Dropping a table would delete the members of groups that refer to it, so its text
    is edited: https://sqlite.org/lang_altertable.html, at the end, allows that for NOT NULL."""
    op.execute("PRAGMA writable_schema = ON")
    op.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'provider_id TEXT NOT NULL', 'provider_id TEXT')"
        " WHERE type = 'table' AND name IN ('group_mappings', 'attribute_mappings')"
    )
    op.execute("PRAGMA writable_schema = RESET")
