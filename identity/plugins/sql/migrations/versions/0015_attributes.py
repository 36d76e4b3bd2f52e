"""Attributes that organizations define for their people, and their values."""

from alembic import op

revision = "0015"
down_revision = "0014"
oldest = "0006"

#: Types of ids, of texts that are indexed, and of other texts.
_TYPES = {
    "sqlite": ("TEXT", "TEXT", "TEXT"),
    "postgresql": ('TEXT COLLATE "C"',) * 3,
    "mariadb": ("VARCHAR(64)", "VARCHAR(500)", "LONGTEXT"),
}
#: As of the other tables.
_MARIADB = " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"

_DEFINITIONS = """
CREATE TABLE IF NOT EXISTS attribute_definitions (
    id {id} NOT NULL, organization_id {id} NOT NULL, {key} {id} NOT NULL, label {text} NOT NULL, hint {text} NOT NULL,
    type {text} NOT NULL, choices {text} NOT NULL, required BOOLEAN NOT NULL, visible_to {text} NOT NULL,
    editable_by {text} NOT NULL, confidential BOOLEAN NOT NULL, in_tokens BOOLEAN NOT NULL, claim {text} NOT NULL,
    created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, version INTEGER NOT NULL,
    CONSTRAINT pk_attribute_definitions PRIMARY KEY (id),
    CONSTRAINT uq_attribute_definitions_organization_id_key UNIQUE (organization_id, {key}),
    CONSTRAINT fk_attribute_definitions_organization_id FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
)
"""
_VALUES = """
CREATE TABLE IF NOT EXISTS attribute_values (
    user_id {id} NOT NULL, definition_id {id} NOT NULL, value {indexed} NOT NULL,
    CONSTRAINT pk_attribute_values PRIMARY KEY (user_id, definition_id),
    CONSTRAINT fk_attribute_values_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT fk_attribute_values_definition_id FOREIGN KEY (definition_id)
        REFERENCES attribute_definitions (id) ON DELETE CASCADE
)
"""


def upgrade() -> None:
    """Programs before know neither table."""
    dialect = op.get_context().dialect.name
    id_, indexed, text = _TYPES[dialect]
    names = {"id": id_, "indexed": indexed, "text": text, "key": "`key`" if dialect == "mariadb" else '"key"'}
    options = _MARIADB if dialect == "mariadb" else ""
    for table in (_DEFINITIONS, _VALUES):
        op.execute(table.format(**names) + options)
    op.execute(
        "CREATE INDEX IF NOT EXISTS ix_attribute_values_definition_id_value ON attribute_values (definition_id, value)"
    )
