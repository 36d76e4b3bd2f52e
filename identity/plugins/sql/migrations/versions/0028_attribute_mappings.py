"""Claims of identity providers are values of attributes."""

from alembic import op

revision = "0028"
down_revision = "0027"
oldest = "0006"

#: By database: types of ids and other short values, and of texts; table options.
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
CREATE TABLE IF NOT EXISTS attribute_mappings (
    id {id} NOT NULL, provider_id {id} NOT NULL, attribute_id {id} NOT NULL, organization_id {id} NOT NULL,
    claim {text} NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, editor_id {id},
    version INTEGER NOT NULL,
    CONSTRAINT pk_attribute_mappings PRIMARY KEY (id),
    CONSTRAINT uq_attribute_mappings_provider_id_attribute_id UNIQUE (provider_id, attribute_id),
    CONSTRAINT fk_attribute_mappings_provider_id FOREIGN KEY (provider_id)
        REFERENCES upstream_providers (id) ON DELETE CASCADE,
    CONSTRAINT fk_attribute_mappings_attribute_id FOREIGN KEY (attribute_id)
        REFERENCES attribute_definitions (id) ON DELETE CASCADE
) {options}
"""
_INDEX = "ix_attribute_mappings_attribute_id"


def upgrade() -> None:
    """Programs before apply no mapping."""
    op.execute(_TABLE.format(**_WORDS[op.get_context().dialect.name]))
    op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON attribute_mappings (attribute_id)")
