"""Audit events name the group of a membership or of roles, and are found by it."""

from collections.abc import Iterator

from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0026"
down_revision = "0025"
oldest = "0006"

_INDEX = "ix_audit_events_group_id_sequence"
_COLUMN = {
    "postgresql": ('ALTER TABLE audit_events ADD COLUMN IF NOT EXISTS group_id TEXT COLLATE "C"',),
    "sqlite": ("ALTER TABLE audit_events ADD COLUMN group_id TEXT",),
    "mariadb": (
        "ALTER TABLE audit_events ADD COLUMN IF NOT EXISTS group_id VARCHAR(64)",
        f"CREATE INDEX IF NOT EXISTS {_INDEX} ON audit_events (group_id, sequence)",
    ),
}
_NEVER_CHANGED = "audit events are never changed"
_ERASED = '{"erased": true}'
#: All columns but ``detail``.
_OTHERS = (
    *("id", "at", "event", "actor_kind", "actor_id", "client_id", "session_id", "client_address", "request_id"),
    *("object_kind", "object_id", "organization_id", "result", "reason", "once", "sequence", "user_id", "group_id"),
)


def _erases(same: str) -> str:
    """True for a change of a detail alone, to ERASED, where the event is about a person who is no longer there."""
    others = " AND ".join(f"NEW.{column} {same} OLD.{column}" for column in _OTHERS)
    gone = "OLD.object_kind = 'user' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = OLD.object_id)"
    return f"NEW.detail = '{_ERASED}' AND {gone} AND {others}"


def _guard(dialect: str) -> Iterator[str]:
    if dialect == "postgresql":
        yield f"""
        CREATE OR REPLACE FUNCTION refuse_change_of_audit_events() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NOT ({_erases("IS NOT DISTINCT FROM")}) THEN RAISE EXCEPTION '{_NEVER_CHANGED}'; END IF;
        RETURN NEW; END $$
        """
    elif dialect == "sqlite":
        yield "DROP TRIGGER IF EXISTS audit_events_are_only_erased"
        yield f"""
        CREATE TRIGGER audit_events_are_only_erased BEFORE UPDATE ON audit_events WHEN NOT ({_erases("IS")})
        BEGIN SELECT RAISE(ABORT, '{_NEVER_CHANGED}'); END
        """
    else:
        yield f"""
        CREATE OR REPLACE TRIGGER audit_events_are_never_updated BEFORE UPDATE ON audit_events
        FOR EACH ROW BEGIN
            IF NOT ({_erases("<=>")}) THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{_NEVER_CHANGED}';
            END IF;
        END
        """  # noqa: S608 - words of our own


def upgrade() -> None:
    """Programs before name no group in their events."""
    dialect = op.get_context().dialect.name
    for statement in (*_COLUMN[dialect], *_guard(dialect)):
        op.execute(statement)
    if dialect != "mariadb":
        add_index(_INDEX, "audit_events", ["group_id", "sequence"], where="group_id IS NOT NULL")
