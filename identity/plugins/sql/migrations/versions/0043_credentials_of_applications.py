"""Federated credentials belong to a service user or to an application."""

from collections.abc import Iterator

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0043"
down_revision = "0042"
oldest = "0006"

_TABLE = "federated_credentials"
_NAME = "fk_federated_credentials_application_id"
_REFERENCES = "REFERENCES applications (id) ON DELETE CASCADE"
_RULE = "CONSTRAINT ck_federated_credentials_owner CHECK ((user_id IS NULL) <> (application_id IS NULL))"
_INDEX = "ix_federated_credentials_application_id_created_at_id"
_COLUMNS = ["application_id", "created_at", "id"]


def _statements(dialect: str) -> Iterator[str]:
    if dialect == "postgresql":
        yield f"ALTER TABLE {_TABLE} ALTER COLUMN user_id DROP NOT NULL"
        yield (
            f'ALTER TABLE {_TABLE} ADD COLUMN IF NOT EXISTS application_id TEXT COLLATE "C"'
            f" CONSTRAINT {_NAME} {_REFERENCES} {_RULE}"
        )
    elif dialect == "mariadb":
        yield f"ALTER TABLE {_TABLE} MODIFY user_id VARCHAR(64)"
        yield f"ALTER TABLE {_TABLE} ADD COLUMN IF NOT EXISTS application_id VARCHAR(64)"
        yield f"CREATE INDEX IF NOT EXISTS {_INDEX} ON {_TABLE} ({', '.join(_COLUMNS)})"
        yield (f"ALTER TABLE {_TABLE} ADD CONSTRAINT {_NAME} FOREIGN KEY IF NOT EXISTS (application_id) {_REFERENCES}")
        yield f"ALTER TABLE {_TABLE} ADD CONSTRAINT IF NOT EXISTS {_RULE.removeprefix('CONSTRAINT ')}"
    else:
        yield f"ALTER TABLE {_TABLE} ADD COLUMN application_id TEXT CONSTRAINT {_NAME} {_REFERENCES} {_RULE}"


def upgrade() -> None:
    """Programs before find no credential of an application: they list those of one service user."""
    dialect = op.get_context().dialect.name
    if dialect == "sqlite":
        _drop_not_null_on_sqlite()
    for statement in _statements(dialect):
        op.execute(statement)
    if dialect != "mariadb":
        add_index(_INDEX, _TABLE, _COLUMNS, where="application_id IS NOT NULL")


def _drop_not_null_on_sqlite() -> None:
    """SQLite cannot change a column. Dropping the table would delete the access tokens that refer to it, so its text
    is edited: https://sqlite.org/lang_altertable.html, at the end, allows that for NOT NULL."""
    op.execute("PRAGMA writable_schema = ON")
    op.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'user_id TEXT NOT NULL', 'user_id TEXT')"
        " WHERE type = 'table' AND name = 'federated_credentials'"
    )
    op.execute("PRAGMA writable_schema = RESET")
