"""Figures by day, and the latest requests of each application."""

from alembic import op

revision = "0016"
down_revision = "0015"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}
_KEY = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}
_OPTIONS = {
    "mariadb": " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin",
}
_STATEMENTS = (
    """
    CREATE TABLE IF NOT EXISTS figures (
        organization_id {key} NOT NULL, kind {key} NOT NULL, day INTEGER NOT NULL, object_id {key} NOT NULL,
        number BIGINT NOT NULL,
        CONSTRAINT pk_figures PRIMARY KEY (organization_id, kind, day, object_id)
    ){options}
    """,
    "CREATE INDEX IF NOT EXISTS ix_figures_day ON figures (day)",
    """
    CREATE TABLE IF NOT EXISTS application_requests (
        id {key} NOT NULL, application_id {key} NOT NULL, at BIGINT NOT NULL, endpoint {text} NOT NULL,
        grant_type {text} NOT NULL, error {text} NOT NULL, reason {text} NOT NULL, user_id {key},
        client_network {text} NOT NULL,
        CONSTRAINT pk_application_requests PRIMARY KEY (id),
        CONSTRAINT fk_application_requests_application_id FOREIGN KEY (application_id)
            REFERENCES applications (id) ON DELETE CASCADE,
        CONSTRAINT fk_application_requests_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
    ){options}
    """,
    "CREATE INDEX IF NOT EXISTS ix_application_requests_application_id_at_id"
    " ON application_requests (application_id, at, id)",
    "CREATE INDEX IF NOT EXISTS ix_application_requests_at ON application_requests (at)",
    "CREATE INDEX IF NOT EXISTS ix_application_requests_user_id ON application_requests (user_id){where}",
)


def upgrade() -> None:
    """Programs before count nothing."""
    dialect = op.get_context().dialect.name
    words = {
        "key": _KEY[dialect],
        "text": _TEXT[dialect],
        "options": _OPTIONS.get(dialect, ""),
        "where": "" if dialect == "mariadb" else " WHERE user_id IS NOT NULL",
    }
    for statement in _STATEMENTS:
        op.execute(statement.format(**words))
