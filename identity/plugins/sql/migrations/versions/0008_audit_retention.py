"""Audit events can be deleted that are older than they are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
oldest = "0006"

_FLOOR = "coalesce((SELECT kept_since FROM audit_floor), 0)"
_NEVER_CHANGED = "audit events are never changed"
_GUARDS = {
    "postgresql": (
        "DROP TRIGGER audit_events_are_never_changed ON audit_events",
        """
        CREATE TRIGGER audit_events_are_never_updated BEFORE UPDATE ON audit_events
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_events()
        """,
        f"""
        CREATE FUNCTION refuse_early_deletion_of_audit_events() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF OLD.at >= {_FLOOR} THEN RAISE EXCEPTION '{_NEVER_CHANGED}'; END IF; RETURN OLD; END $$
        """,
        """
        CREATE TRIGGER audit_events_are_kept BEFORE DELETE ON audit_events
        FOR EACH ROW EXECUTE FUNCTION refuse_early_deletion_of_audit_events()
        """,
    ),
    "sqlite": (
        "DROP TRIGGER audit_events_are_never_deleted",
        f"""
        CREATE TRIGGER audit_events_are_kept BEFORE DELETE ON audit_events WHEN OLD.at >= {_FLOOR}
        BEGIN SELECT RAISE(ABORT, '{_NEVER_CHANGED}'); END
        """,
    ),
}


def upgrade() -> None:
    """The guard looks at the moment; programs before append, as they did."""
    op.create_table(
        "audit_floor",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("kept_since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_floor"),
        sa.CheckConstraint("id = 1", name=op.f("ck_audit_floor_one_row")),
    )
    for statement in _GUARDS[op.get_context().dialect.name]:
        op.execute(statement)
