"""Service users can be agents of a person."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0046"
down_revision = "0045"
oldest = "0006"

_INDEX = "ix_users_owner_user_id"


def upgrade() -> None:
    """Programs before cannot read an agent, because its kind is new: it gets no tokens from them."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    word = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}[dialect]
    for column in (f"owner_user_id {word}", "may_manage BOOLEAN DEFAULT FALSE NOT NULL", "stopped_at BIGINT"):
        op.execute(f"ALTER TABLE users ADD COLUMN {again}{column}")
    if dialect == "mariadb":
        op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON users (owner_user_id)")
    else:
        add_index(_INDEX, "users", ["owner_user_id"], where="owner_user_id IS NOT NULL")
