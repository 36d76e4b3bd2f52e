"""Projects have addresses of their APIs, which families of tokens can be limited to."""

from alembic import op

revision = "0040"
down_revision = "0039"
oldest = "0006"

_WORDS = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(255)"}
_ID = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}
_LONG = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}
_OPTIONS = {"mariadb": " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"}


def upgrade() -> None:
    """Programs before write projects without addresses, and ignore what a family is limited to."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    empty = "DEFAULT '[]'" if dialect != "mariadb" else "DEFAULT ('[]')"
    op.execute(f"ALTER TABLE projects ADD COLUMN {again}resource_uris {_LONG[dialect]} NOT NULL {empty}")
    op.execute(f"ALTER TABLE token_families ADD COLUMN {again}resources {_LONG[dialect]}")
    op.execute(
        f"CREATE TABLE IF NOT EXISTS project_resources ("
        f"project_id {_ID[dialect]} NOT NULL, uri {_WORDS[dialect]} NOT NULL,"
        " CONSTRAINT pk_project_resources PRIMARY KEY (project_id, uri),"
        " CONSTRAINT fk_project_resources_project_id FOREIGN KEY (project_id) REFERENCES projects (id)"
        f" ON DELETE CASCADE){_OPTIONS.get(dialect, '')}"
    )
    op.execute("CREATE INDEX IF NOT EXISTS ix_project_resources_uri ON project_resources (uri)")
