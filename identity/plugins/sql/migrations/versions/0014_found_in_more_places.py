"""Audit events tell whose the object is, and are found by request; names are found without "ł" and the like."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0014"
down_revision = "0013"
oldest = "0006"

_BATCH = 1000

# --- audit events ------------------------------------------------------------------------------------------------

_COLUMN = {
    "postgresql": ('ALTER TABLE audit_events ADD COLUMN IF NOT EXISTS user_id TEXT COLLATE "C"',),
    "sqlite": ("ALTER TABLE audit_events ADD COLUMN user_id TEXT",),
    "mariadb": (
        "ALTER TABLE audit_events ADD COLUMN IF NOT EXISTS user_id VARCHAR(64)",
        "CREATE INDEX IF NOT EXISTS ix_audit_events_user_id_sequence ON audit_events (user_id, sequence)",
        # The longest id that a proxy may give to a request.
        "CREATE INDEX IF NOT EXISTS ix_audit_events_request_id ON audit_events (request_id(128))",
    ),
}

_NEVER_CHANGED = "audit events are never changed"
_ERASED = '{"erased": true}'
#: All columns but ``detail`` and ``user_id``.
_OTHERS = (
    *("id", "at", "event", "actor_kind", "actor_id", "client_id", "session_id", "client_address", "request_id"),
    *("object_kind", "object_id", "organization_id", "result", "reason", "once", "sequence"),
)


def _kept(same: str, *columns: str) -> str:
    return " AND ".join(f"NEW.{column} {same} OLD.{column}" for column in (*_OTHERS, *columns))


def _erases(same: str) -> str:
    """True for a change of a detail alone, to ERASED, where the event is about a person who is no longer there."""
    gone = "OLD.object_kind = 'user' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = OLD.object_id)"
    return f"NEW.detail = '{_ERASED}' AND {gone} AND {_kept(same, 'user_id')}"


def _fills(same: str) -> str:
    """The same, and where nothing changes but that a user is told where none was."""
    return f"({_erases(same)}) OR (OLD.user_id IS NULL AND {_kept(same, 'detail')})"


def _guard(dialect: str, allowed: Callable[[str], str]) -> Iterator[str]:
    if dialect == "postgresql":
        yield f"""
        CREATE OR REPLACE FUNCTION refuse_change_of_audit_events() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NOT ({allowed("IS NOT DISTINCT FROM")}) THEN RAISE EXCEPTION '{_NEVER_CHANGED}'; END IF;
        RETURN NEW; END $$
        """
    elif dialect == "sqlite":
        yield "DROP TRIGGER IF EXISTS audit_events_are_only_erased"
        yield f"""
        CREATE TRIGGER audit_events_are_only_erased BEFORE UPDATE ON audit_events WHEN NOT ({allowed("IS")})
        BEGIN SELECT RAISE(ABORT, '{_NEVER_CHANGED}'); END
        """
    else:
        yield f"""
        CREATE OR REPLACE TRIGGER audit_events_are_never_updated BEFORE UPDATE ON audit_events
        FOR EACH ROW BEGIN
            IF NOT ({allowed("<=>")}) THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{_NEVER_CHANGED}';
            END IF;
        END
        """  # noqa: S608 - words of our own


#: Kinds of things of a user: what was made and removed names the user, a change does not.
_OF_USERS = ("user_grant", "manager", "service_user_key", "service_user_secret", "personal_access_token", "application")
_EVENTS = sa.text(
    "SELECT sequence, object_id, detail FROM audit_events"
    " WHERE sequence > :after AND user_id IS NULL AND object_kind IN :kinds ORDER BY sequence LIMIT :limit"
).bindparams(sa.bindparam("kinds", expanding=True))
_USER_OF = sa.text(
    "SELECT user_id FROM audit_events WHERE object_id = :object_id AND object_kind <> 'application'"
    " AND user_id IS NOT NULL ORDER BY sequence LIMIT 1"
)
_FILL = "UPDATE audit_events SET user_id = :user_id WHERE sequence = :sequence AND user_id IS NULL"


def _tell_users(connection: Any) -> None:
    after = 0
    while True:
        given = {"after": after, "kinds": _OF_USERS, "limit": _BATCH}
        rows = connection.execute(_EVENTS, given).all()
        for sequence, object_id, detail in rows:
            user_id = _named(detail) or connection.execute(_USER_OF, {"object_id": object_id}).scalar()
            if user_id is not None:
                connection.execute(sa.text(_FILL), {"user_id": user_id, "sequence": sequence})
        if len(rows) < _BATCH:
            return
        after = rows[-1][0]


def _named(detail: str) -> str | None:
    try:
        user_id = json.loads(detail).get("user_id")
    except (ValueError, AttributeError):
        return None
    return user_id if isinstance(user_id, str) and len(user_id) <= 64 else None


# --- what searches look at ---------------------------------------------------------------------------------------

_SEARCHED = ("users", "organizations", "projects", "applications", "upstream_providers")
_LETTERS = str.maketrans("łøđðħıŧŋƶǥƀɨ", "loddhitnzgbi") | str.maketrans({"æ": "ae", "œ": "oe", "þ": "th"})


def _folded(text: str) -> str:
    """The text as it is made from now on: the letters are all that is new, and none of them takes more room."""
    lines: list[str] = []
    for line in text.translate(_LETTERS).splitlines(keepends=True):
        if not any(line.removesuffix("\n") in other for other in lines):
            lines.append(line)
    return "".join(lines)


def _search_texts(connection: Any, table: str) -> None:
    after = ""
    page = sa.text(f"SELECT id, search_text FROM {table} WHERE id > :after ORDER BY id LIMIT :limit")  # noqa: S608
    # Whoever is changed meanwhile keeps what the program wrote.
    change = sa.text(f"UPDATE {table} SET search_text = :new WHERE id = :id AND search_text = :old")  # noqa: S608
    while True:
        rows = connection.execute(page, {"after": after, "limit": _BATCH}).all()
        for id_, stored in rows:
            old = stored.decode() if isinstance(stored, bytes) else stored
            new = _folded(old)
            if new != old:
                connection.execute(change, {"id": id_, "old": stored, "new": new})
        if len(rows) < _BATCH:
            return
        after = rows[-1][0]


def _fill() -> None:
    connection = op.get_bind()
    _tell_users(connection)
    for table in _SEARCHED:
        _search_texts(connection, table)


def upgrade() -> None:
    """Programs before tell no user in their events, and go on making search texts in their own way."""
    context = op.get_context()
    dialect = context.dialect.name
    for statement in (*_COLUMN[dialect], *_guard(dialect, _fills)):
        op.execute(statement)
    if dialect != "mariadb":
        add_index(
            "ix_audit_events_user_id_sequence", "audit_events", ["user_id", "sequence"], where="user_id IS NOT NULL"
        )
        add_index("ix_audit_events_request_id", "audit_events", ["request_id"], where="request_id IS NOT NULL")
    if context.as_sql:
        for table, column in (("audit_events", "user_id"), *((table, "search_text") for table in _SEARCHED)):
            op.execute(f"UPDATE {table} SET {column} = … -- in batches, where it changes")  # noqa: S608
    elif context.opts["transaction_per_migration"]:
        # Each row by itself: nobody waits for one of them until all are done.
        with context.autocommit_block():
            _fill()
    else:
        _fill()
    for statement in _guard(dialect, _erases):
        op.execute(statement)
