"""Webhooks of organizations and of the instance, and the deliveries to them."""

from alembic import op

revision = "0017"
down_revision = "0016"
oldest = "0006"

#: By database: types of ids and other short values, of texts, of sealed values and of search texts; table options.
_WORDS = {
    "sqlite": {"id": "TEXT", "text": "TEXT", "sealed": "BLOB", "search": "TEXT", "options": ""},
    "postgresql": {
        **dict.fromkeys(("id", "text", "search"), 'TEXT COLLATE "C"'),
        "sealed": "BYTEA",
        "options": "",
    },
    "mariadb": {
        "id": "VARCHAR(64)",
        "text": "LONGTEXT",
        "sealed": "LONGBLOB",
        "search": "VARBINARY(2000)",
        "options": "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin",
    },
}
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS webhooks (
        id {id} NOT NULL, organization_id {id}, name {text} NOT NULL, url {text} NOT NULL,
        created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, events {text} NOT NULL, secret {sealed} NOT NULL,
        secret_changed_at BIGINT, previous_secret_expires_at BIGINT, active BOOLEAN NOT NULL,
        version INTEGER NOT NULL, search_text {search} NOT NULL,
        CONSTRAINT pk_webhooks PRIMARY KEY (id),
        CONSTRAINT fk_webhooks_organization_id FOREIGN KEY (organization_id)
            REFERENCES organizations (id) ON DELETE CASCADE
    ) {options}
    """,
    """
    CREATE TABLE IF NOT EXISTS webhook_deliveries (
        id {id} NOT NULL, webhook_id {id} NOT NULL, event_id {id} NOT NULL, event {id} NOT NULL,
        created_at BIGINT NOT NULL, next_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, state {id} NOT NULL,
        attempts INTEGER NOT NULL, attempted_at BIGINT, duration_ms INTEGER, status INTEGER, problem {text},
        answer {text} NOT NULL,
        CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id),
        CONSTRAINT fk_webhook_deliveries_webhook_id FOREIGN KEY (webhook_id)
            REFERENCES webhooks (id) ON DELETE CASCADE
    ) {options}
    """,
)
_INDEXES = (
    ("webhooks", ("organization_id", "created_at", "id")),
    ("webhook_deliveries", ("webhook_id", "created_at", "id")),
    ("webhook_deliveries", ("webhook_id", "state", "next_at", "id")),
    ("webhook_deliveries", ("expires_at",)),
)


def upgrade() -> None:
    """Programs before know neither table, and queue nothing for webhooks."""
    words = _WORDS[op.get_context().dialect.name]
    for table in _TABLES:
        op.execute(table.format(**words))
    for table, columns in _INDEXES:
        op.execute(f"CREATE INDEX IF NOT EXISTS ix_{table}_{'_'.join(columns)} ON {table} ({', '.join(columns)})")
