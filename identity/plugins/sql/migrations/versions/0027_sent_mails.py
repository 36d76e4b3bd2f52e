"""The log of sent mails, and what it says of a message in the outbox."""

from alembic import op

revision = "0027"
down_revision = "0026"
oldest = "0006"

_TEXT = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "LONGTEXT"}
_KEY = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"', "mariadb": "VARCHAR(64)"}
_OPTIONS = {"mariadb": " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin"}
_STATEMENTS = (
    """
    CREATE TABLE IF NOT EXISTS sent_mails (
        id {key} NOT NULL, kind {text} NOT NULL, recipient {text} NOT NULL, outcome {text} NOT NULL,
        created_at BIGINT NOT NULL, ended_at BIGINT NOT NULL, attempts INTEGER NOT NULL, reply {text} NOT NULL,
        message_id {text} NOT NULL, language {text} NOT NULL, user_id {key}, organization_id {text},
        CONSTRAINT pk_sent_mails PRIMARY KEY (id),
        CONSTRAINT fk_sent_mails_user_id FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
    ){options}
    """,
    "CREATE INDEX IF NOT EXISTS ix_sent_mails_created_at_id ON sent_mails (created_at, id)",
    "CREATE INDEX IF NOT EXISTS ix_sent_mails_user_id_created_at_id ON sent_mails (user_id, created_at, id){where}",
)


def upgrade() -> None:
    """Programs before log nothing, and queue messages without a purpose."""
    dialect = op.get_context().dialect.name
    again = "" if dialect == "sqlite" else "IF NOT EXISTS "
    for column in ("purpose", "user_id", "language"):
        op.execute(f"ALTER TABLE outgoing_messages ADD COLUMN {again}{column} {_TEXT[dialect]}")
    words = {
        "key": _KEY[dialect],
        "text": _TEXT[dialect],
        "options": _OPTIONS.get(dialect, ""),
        "where": "" if dialect == "mariadb" else " WHERE user_id IS NOT NULL",
    }
    for statement in _STATEMENTS:
        op.execute(statement.format(**words))
