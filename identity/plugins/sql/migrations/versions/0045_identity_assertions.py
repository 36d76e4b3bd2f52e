"""Identity assertions: which applications take those of a provider, which give them to others, and what they began."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0045"
down_revision = "0044"
oldest = "0006"

_ID = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}
_LONG = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}
_OPTIONS = {"mariadb": " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"}
_NAME, _INDEX = "fk_token_families_provider_id", "ix_token_families_provider_id"
_REFERENCES = "REFERENCES upstream_providers (id) ON DELETE CASCADE"
#: The reference stands beside the column, so that existing rows are not checked.
_COLUMN = {
    "sqlite": (f"ALTER TABLE token_families ADD COLUMN provider_id TEXT CONSTRAINT {_NAME} {_REFERENCES}",),
    "postgresql": (
        "ALTER TABLE token_families ADD COLUMN IF NOT EXISTS"
        f' provider_id TEXT COLLATE "C" CONSTRAINT {_NAME} {_REFERENCES}',
    ),
    "mariadb": (
        "ALTER TABLE token_families ADD COLUMN IF NOT EXISTS provider_id VARCHAR(64)",
        f"CREATE INDEX IF NOT EXISTS {_INDEX} ON token_families (provider_id)",
        f"ALTER TABLE token_families ADD CONSTRAINT {_NAME} FOREIGN KEY IF NOT EXISTS (provider_id) {_REFERENCES}",
    ),
}


def upgrade() -> None:
    """Programs before take and give no identity assertions, and write rows without lists."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    empty = "DEFAULT '[]'" if dialect != "mariadb" else "DEFAULT ('[]')"
    for table, column in (
        ("upstream_providers", "identity_assertion_clients"),
        ("applications", "identity_assertion_audiences"),
    ):
        op.execute(f"ALTER TABLE {table} ADD COLUMN {again}{column} {_LONG[dialect]} NOT NULL {empty}")
    op.execute(
        f"CREATE TABLE IF NOT EXISTS upstream_provider_clients ("
        f"provider_id {_ID[dialect]} NOT NULL, client_id {_ID[dialect]} NOT NULL,"
        " CONSTRAINT pk_upstream_provider_clients PRIMARY KEY (provider_id, client_id),"
        " CONSTRAINT fk_upstream_provider_clients_provider_id FOREIGN KEY (provider_id)"
        " REFERENCES upstream_providers (id)"
        f" ON DELETE CASCADE){_OPTIONS.get(dialect, '')}"
    )
    op.execute(
        "CREATE INDEX IF NOT EXISTS ix_upstream_provider_clients_client_id ON upstream_provider_clients (client_id)"
    )
    for statement in _COLUMN[dialect]:
        op.execute(statement)
    if dialect != "mariadb":
        add_index(_INDEX, "token_families", ["provider_id"], where="provider_id IS NOT NULL")
