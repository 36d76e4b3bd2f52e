"""What audit events tell of a person can be erased when the person is deleted."""

from alembic import op

revision = "0009"
down_revision = "0008"
oldest = "0006"

_NEVER_CHANGED = "audit events are never changed"
_ERASED = '{"erased": true}'
#: All but ``detail``.
_KEPT = (
    *("id", "at", "event", "actor_kind", "actor_id", "client_id", "session_id", "client_address", "request_id"),
    *("object_kind", "object_id", "organization_id", "result", "reason", "once", "sequence"),
)


def _erases(same: str) -> str:
    """True for a change of a detail alone, to ERASED, where the event is about a person who is no longer there."""
    kept = " AND ".join(f"NEW.{column} {same} OLD.{column}" for column in _KEPT)
    gone = "OLD.object_kind = 'user' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = OLD.object_id)"
    return f"NEW.detail = '{_ERASED}' AND {gone} AND {kept}"


_GUARDS = {
    "postgresql": (
        "DROP TRIGGER audit_events_are_never_updated ON audit_events",
        f"""
        CREATE OR REPLACE FUNCTION refuse_change_of_audit_events() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NOT ({_erases("IS NOT DISTINCT FROM")}) THEN RAISE EXCEPTION '{_NEVER_CHANGED}'; END IF;
        RETURN NEW; END $$
        """,
        """
        CREATE TRIGGER audit_events_are_only_erased BEFORE UPDATE ON audit_events
        FOR EACH ROW EXECUTE FUNCTION refuse_change_of_audit_events()
        """,
    ),
    "sqlite": (
        "DROP TRIGGER audit_events_are_never_updated",
        f"""
        CREATE TRIGGER audit_events_are_only_erased BEFORE UPDATE ON audit_events WHEN NOT ({_erases("IS")})
        BEGIN SELECT RAISE(ABORT, '{_NEVER_CHANGED}'); END
        """,
    ),
    "mariadb": (
        f"""
        CREATE OR REPLACE TRIGGER audit_events_are_never_updated BEFORE UPDATE ON audit_events
        FOR EACH ROW BEGIN
            IF NOT ({_erases("<=>")}) THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{_NEVER_CHANGED}';
            END IF;
        END
        """,  # noqa: S608 - words of our own
    ),
}


def upgrade() -> None:
    """The guard looks at who is there; programs before erase nothing."""
    for statement in _GUARDS[op.get_context().dialect.name]:
        op.execute(statement)
