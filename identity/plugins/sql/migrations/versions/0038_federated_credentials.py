"""Service users get tokens for tokens of outside issuers."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0038"
down_revision = "0037"
oldest = "0006"

#: By database: types of ids and of texts; table options.
_WORDS = {
    "sqlite": {"id": "TEXT", "text": "TEXT", "options": ""},
    "postgresql": {**dict.fromkeys(("id", "text"), 'TEXT COLLATE "C"'), "options": ""},
    "mariadb": {
        "id": "VARCHAR(64)",
        "text": "LONGTEXT",
        "options": "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin",
    },
}
_TABLE = """
CREATE TABLE IF NOT EXISTS federated_credentials (
    id {id} NOT NULL, user_id {id} NOT NULL, name {text} NOT NULL, issuer {text} NOT NULL, conditions {text} NOT NULL,
    kind {text} NOT NULL, jwks_uri {text} NOT NULL, jwks {text} NOT NULL, instance_managed BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL, last_used_at BIGINT,
    CONSTRAINT pk_federated_credentials PRIMARY KEY (id),
    CONSTRAINT fk_federated_credentials_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) {options}
"""
_REFERENCES = "REFERENCES federated_credentials (id) ON DELETE CASCADE"
_NAME = "fk_access_tokens_federated_credential_id"
_INDEX = "ix_access_tokens_federated_credential_id"
#: The reference stands beside the column, so that existing rows are not checked.
_COLUMN = {
    "sqlite": (f"ALTER TABLE access_tokens ADD COLUMN federated_credential_id TEXT CONSTRAINT {_NAME} {_REFERENCES}",),
    "postgresql": (
        "ALTER TABLE access_tokens ADD COLUMN IF NOT EXISTS"
        f' federated_credential_id TEXT COLLATE "C" CONSTRAINT {_NAME} {_REFERENCES}',
    ),
    "mariadb": (
        "ALTER TABLE access_tokens ADD COLUMN IF NOT EXISTS federated_credential_id VARCHAR(64)",
        f"CREATE INDEX IF NOT EXISTS {_INDEX} ON access_tokens (federated_credential_id)",
        f"ALTER TABLE access_tokens ADD CONSTRAINT {_NAME}"
        f" FOREIGN KEY IF NOT EXISTS (federated_credential_id) {_REFERENCES}",
    ),
}


def upgrade() -> None:
    """Programs before accept no token of an outside issuer."""
    dialect = op.get_context().dialect.name
    op.execute(_TABLE.format(**_WORDS[dialect]))
    name = "ix_federated_credentials_user_id_created_at_id"
    op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON federated_credentials (user_id, created_at, id)")
    for statement in _COLUMN[dialect]:
        op.execute(statement)
    if dialect != "mariadb":
        add_index(_INDEX, "access_tokens", ["federated_credential_id"], where="federated_credential_id IS NOT NULL")
