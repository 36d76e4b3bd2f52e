"""Claims of identity providers make people members of groups."""

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0025"
down_revision = "0024"
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
CREATE TABLE IF NOT EXISTS group_mappings (
    id {id} NOT NULL, provider_id {id} NOT NULL, group_id {id} NOT NULL, organization_id {id} NOT NULL,
    claim {text} NOT NULL, value {text} NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL,
    editor_id {id}, version INTEGER NOT NULL,
    CONSTRAINT pk_group_mappings PRIMARY KEY (id),
    CONSTRAINT fk_group_mappings_provider_id FOREIGN KEY (provider_id)
        REFERENCES upstream_providers (id) ON DELETE CASCADE,
    CONSTRAINT fk_group_mappings_group_id FOREIGN KEY (group_id) REFERENCES groups (id) ON DELETE CASCADE
) {options}
"""
_REFERENCES = "REFERENCES group_mappings (id) ON DELETE CASCADE"
_NAME = "fk_group_members_mapping_id"
_INDEX = "ix_group_members_mapping_id"
#: The reference stands beside the column, so that existing rows are not checked.
_COLUMN = {
    "sqlite": (f"ALTER TABLE group_members ADD COLUMN mapping_id TEXT CONSTRAINT {_NAME} {_REFERENCES}",),
    "postgresql": (
        "ALTER TABLE group_members ADD COLUMN IF NOT EXISTS"
        f' mapping_id TEXT COLLATE "C" CONSTRAINT {_NAME} {_REFERENCES}',
    ),
    "mariadb": (
        "ALTER TABLE group_members ADD COLUMN IF NOT EXISTS mapping_id VARCHAR(64)",
        f"CREATE INDEX IF NOT EXISTS {_INDEX} ON group_members (mapping_id)",
        f"ALTER TABLE group_members ADD CONSTRAINT {_NAME} FOREIGN KEY IF NOT EXISTS (mapping_id) {_REFERENCES}",
    ),
}


def upgrade() -> None:
    """Programs before apply no mapping; members whom one added keep the group there until it is deleted."""
    dialect = op.get_context().dialect.name
    op.execute(_TABLE.format(**_WORDS[dialect]))
    for column in ("provider_id", "group_id"):
        name = f"ix_group_mappings_{column}_created_at_id"
        op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON group_mappings ({column}, created_at, id)")
    for statement in _COLUMN[dialect]:
        op.execute(statement)
    if dialect != "mariadb":
        add_index(_INDEX, "group_members", ["mapping_id"], where="mapping_id IS NOT NULL")
