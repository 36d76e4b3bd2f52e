"""Groups of organizations, their members and their roles."""

from alembic import op

revision = "0021"
down_revision = "0020"
oldest = "0006"

#: By database: types of ids and other short values, of texts, of name keys and search texts; table options.
_WORDS = {
    "sqlite": {**dict.fromkeys(("id", "text", "key", "search"), "TEXT"), "options": ""},
    "postgresql": {**dict.fromkeys(("id", "text", "key", "search"), 'TEXT COLLATE "C"'), "options": ""},
    "mariadb": {
        "id": "VARCHAR(64)",
        "text": "LONGTEXT",
        "key": "VARBINARY(800)",
        "search": "VARBINARY(2000)",
        "options": "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin",
    },
}
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS groups (
        id {id} NOT NULL, organization_id {id} NOT NULL, name {text} NOT NULL, description {text} NOT NULL,
        created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, active BOOLEAN NOT NULL, version INTEGER NOT NULL,
        name_key {key} NOT NULL, search_text {search} NOT NULL,
        CONSTRAINT pk_groups PRIMARY KEY (id),
        CONSTRAINT uq_groups_organization_id_name_key UNIQUE (organization_id, name_key),
        CONSTRAINT fk_groups_organization_id FOREIGN KEY (organization_id)
            REFERENCES organizations (id) ON DELETE CASCADE
    ) {options}
    """,
    """
    CREATE TABLE IF NOT EXISTS group_members (
        id {id} NOT NULL, group_id {id} NOT NULL, user_id {id} NOT NULL, organization_id {id} NOT NULL,
        created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, until BIGINT, version INTEGER NOT NULL,
        CONSTRAINT pk_group_members PRIMARY KEY (id),
        CONSTRAINT uq_group_members_group_id_user_id UNIQUE (group_id, user_id),
        CONSTRAINT fk_group_members_group_id FOREIGN KEY (group_id) REFERENCES groups (id) ON DELETE CASCADE,
        CONSTRAINT fk_group_members_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
    ) {options}
    """,
    """
    CREATE TABLE IF NOT EXISTS group_grants (
        id {id} NOT NULL, group_id {id} NOT NULL, organization_id {id} NOT NULL, project_id {id} NOT NULL,
        roles {text} NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL, project_grant_id {id},
        until BIGINT, version INTEGER NOT NULL,
        CONSTRAINT pk_group_grants PRIMARY KEY (id),
        CONSTRAINT uq_group_grants_group_id_project_id UNIQUE (group_id, project_id),
        CONSTRAINT fk_group_grants_group_id FOREIGN KEY (group_id) REFERENCES groups (id) ON DELETE CASCADE,
        CONSTRAINT fk_group_grants_project_id FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
        CONSTRAINT fk_group_grants_project_grant_id FOREIGN KEY (project_grant_id)
            REFERENCES project_grants (id) ON DELETE CASCADE
    ) {options}
    """,
    """
    CREATE TABLE IF NOT EXISTS group_managers (
        id {id} NOT NULL, group_id {id} NOT NULL, organization_id {id} NOT NULL, level {id} NOT NULL,
        resource_id {id} NOT NULL, roles {text} NOT NULL, created_at BIGINT NOT NULL, changed_at BIGINT NOT NULL,
        until BIGINT, version INTEGER NOT NULL, of_project {id}, of_project_grant {id},
        CONSTRAINT pk_group_managers PRIMARY KEY (id),
        CONSTRAINT uq_group_managers_group_id_level_resource_id UNIQUE (group_id, level, resource_id),
        CONSTRAINT fk_group_managers_group_id FOREIGN KEY (group_id) REFERENCES groups (id) ON DELETE CASCADE,
        CONSTRAINT fk_group_managers_of_project FOREIGN KEY (of_project) REFERENCES projects (id) ON DELETE CASCADE,
        CONSTRAINT fk_group_managers_of_project_grant FOREIGN KEY (of_project_grant)
            REFERENCES project_grants (id) ON DELETE CASCADE
    ) {options}
    """,
)
_INDEXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("group_members", ("group_id", "created_at", "id")),
    ("group_members", ("user_id",)),
    ("group_grants", ("group_id", "created_at", "id")),
    ("group_grants", ("project_id",)),
    ("group_managers", ("group_id", "created_at", "id")),
)
#: Of the rows whose first column is not null, where a database can leave out others.
_PARTIAL_INDEXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("group_members", ("until", "id")),
    ("group_grants", ("until", "id")),
    ("group_grants", ("project_grant_id",)),
    ("group_managers", ("until", "id")),
    ("group_managers", ("of_project",)),
    ("group_managers", ("of_project_grant",)),
)


def upgrade() -> None:
    """Programs before know none of the tables: to them, members do not have the roles of a group."""
    dialect = op.get_context().dialect.name
    for table in _TABLES:
        op.execute(table.format(**_WORDS[dialect]))
    for table, columns in _INDEXES:
        _add_index(table, columns)
    for table, columns in _PARTIAL_INDEXES:
        _add_index(table, columns, "" if dialect == "mariadb" else f" WHERE {columns[0]} IS NOT NULL")


def _add_index(table: str, columns: tuple[str, ...], condition: str = "") -> None:
    name = f"ix_{table}_{'_'.join(columns)}"
    op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({', '.join(columns)}){condition}")
