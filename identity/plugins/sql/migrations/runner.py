"""Runs migrations; imports alembic, so import it only for that."""

import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, MigrationInfo, RevisionStep
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, text
from sqlalchemy.exc import DBAPIError

from identity.plugins.sql.migrations import HEAD, mariadb, require_known_revision
from identity.plugins.sql.migrations.fingerprints import verify_schema
from identity.plugins.sql.migrations.indexes import NAMES
from identity.plugins.sql.settings import MARIADB, POSTGRESQL, SQLITE
from identity.storage.errors import StorageUnavailable

#: An arbitrary number, shared by all processes that migrate this schema.
_ADVISORY_LOCK = 7_203_115_406

#: Seconds between two attempts to get the migration lock or a table lock, and the maximum number of attempts.
_RETRY_DELAY = 0.2
_LOCK_RETRY_PAUSE = 2.0
_LOCK_TIMEOUT = 600.0
#: Another session holds the lock, or a deadlock occurred.
_POSTGRESQL_LOCK_ERRORS = ("55P03", "40P01")
_MARIADB_LOCK_ERRORS = ((1205,), (1213,))
_LOCKED_MESSAGE = (
    "Somebody holds a table that is to be changed, and has not let go of it for ten minutes: a backup or an export, or"
    " a transaction that was left open. Migrate again when it is over; what is through stays."
)

#: From this revision on, the database records which versions can use it.
_FIRST_WITH_OLDEST = "0007"


def script_directory() -> ScriptDirectory:
    """Alembic's script directory with our revisions."""
    return ScriptDirectory(str(Path(__file__).parent))


def run_migrations(engine: Engine, *, is_immediate: bool = False) -> list[str]:
    """Apply pending revisions, one process at a time; returns what was applied. A new database, SQLite, and with
    ``is_immediate`` any other one, is migrated in one transaction. Otherwise each revision has its own: finished ones
    stay, and the next run resumes an interrupted one. Requests wait only briefly, because a change gives up on a locked
    table and retries."""
    with engine.begin() as turn:
        acquire_migration_lock(turn)
        if is_immediate or engine.dialect.name == SQLITE:
            lines = _pending(turn)
            if lines:
                upgrade(turn)
                verify_schema(turn, HEAD)
            return lines
        # A separate connection: the migration's transaction would hold what was read until it ends.
        with engine.connect() as connection:
            lines = _pending(connection)
            is_new = read_revision(connection) is None
            connection.rollback()
            if is_new:
                with connection.begin():
                    upgrade(connection)
            elif lines:
                _upgrade_with_retries(connection)
            verify_schema(connection, HEAD)
            return lines


def _upgrade_with_retries(connection: Connection) -> None:
    """Raises StorageUnavailable, SQLAlchemyError."""
    give_up_at = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            upgrade(connection)
        except DBAPIError as error:
            connection.rollback()
            if not _is_lock_timeout(error):
                raise
            if time.monotonic() >= give_up_at:
                raise StorageUnavailable(_LOCKED_MESSAGE) from error
            time.sleep(_LOCK_RETRY_PAUSE)
        else:
            return


def _is_lock_timeout(error: DBAPIError) -> bool:
    """True if another session holds what is to be changed."""
    original: Any = error.orig
    return getattr(original, "sqlstate", None) in _POSTGRESQL_LOCK_ERRORS or original.args[:1] in _MARIADB_LOCK_ERRORS


def acquire_migration_lock(connection: Connection) -> None:
    """Wait until no other process migrates; on SQLite the transaction itself ensures that."""
    if connection.dialect.name == POSTGRESQL:
        # Polled: an index that the other process creates waits for every running statement.
        taken = text("SELECT pg_try_advisory_xact_lock(:lock)")
        while not connection.execute(taken, {"lock": _ADVISORY_LOCK}).scalar_one():
            time.sleep(_RETRY_DELAY)
        # It may be idle for long. Until the next statement the transaction keeps its snapshot, and creating an index
        # waits for that as well.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
    if connection.dialect.name == MARIADB:
        # Held until the connection is closed.
        connection.execute(text("SELECT GET_LOCK(CONCAT(DATABASE(), '.migrating'), 86400)"))


def read_revision(connection: Connection) -> str | None:
    """The revision of the existing schema; None if there is none."""
    return MigrationContext.configure(connection).get_current_revision()


def read_verified_revision(connection: Connection) -> str | None:
    """The existing revision. Raises StorageUnavailable if the tables are not what it creates, or it is unknown."""
    stored = read_revision(connection)
    verify_schema(connection, stored)
    require_known_revision(stored)
    return stored


def list_pending_revisions(engine: Engine) -> list[str]:
    """What ``run_migrations`` would apply."""
    with engine.connect() as connection:
        return _pending(connection)


def list_all_revisions() -> list[str]:
    """What ``run_migrations`` would apply to a new database."""
    return _revisions_after("base")


def _pending(connection: Connection) -> list[str]:
    return _revisions_after(read_verified_revision(connection) or "base")


def _revisions_after(stored: str) -> list[str]:
    revisions = script_directory().iterate_revisions(HEAD, stored)
    return [
        f"{revision.revision}: {revision.doc}{_compatibility_text(revision, stored)}"
        for revision in reversed(list(revisions))
    ]


def _compatibility_text(revision: Script, stored: str) -> str:
    """Effect on running nodes. The database does not know which run: some may be older than its schema."""
    if stored == "base":
        return ""
    # Earlier versions require their own revision.
    first = max(oldest_compatible_revision(revision), _FIRST_WITH_OLDEST)
    if stored < first:
        return " Stop all nodes of the present version first."
    return f" Nodes of the present version go on, and older ones that came with schema {first} or a later one."


def oldest_compatible_revision(revision: Script) -> str:
    """The oldest revision whose versions can use the schema of this one."""
    oldest: str = revision.module.oldest
    return oldest


def upgrade(connection: Connection, revision: str = HEAD) -> None:
    """Apply revisions up to this one: in the open transaction, or else each in its own. Raises StorageUnavailable."""
    script = script_directory()
    each = not connection.in_transaction()
    if not each and connection.dialect.name == MARIADB and read_revision(connection) is None:
        if revision < mariadb.BEGINS_WITH:
            raise StorageUnavailable(f"With MariaDB the first schema is {mariadb.BEGINS_WITH}, not {revision}.")
        mariadb.begin(connection)
        MigrationContext.configure(connection).stamp(script, mariadb.BEGINS_WITH)
        _store_oldest_compatible(connection, script, mariadb.BEGINS_WITH)

    def steps(stored: str | tuple[str, ...], _context: MigrationContext) -> list[RevisionStep]:
        return script._upgrade_revs(revision, stored)  # type: ignore[arg-type]

    def applied(
        ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
    ) -> None:
        del ctx, heads, run_args
        _store_oldest_compatible(connection, script, str(step.up_revision_id))

    with EnvironmentContext(Config(), script, fn=steps, destination_rev=revision) as environment:
        environment.configure(
            connection=connection,
            target_metadata=MetaData(naming_convention=NAMES),
            transaction_per_migration=each,
            on_version_apply=applied,
        )
        environment.run_migrations()


def _store_oldest_compatible(connection: Connection, script: ScriptDirectory, revision: str) -> None:
    if revision >= _FIRST_WITH_OLDEST:
        oldest = oldest_compatible_revision(script.get_revision(revision))
        connection.execute(text("UPDATE alembic_version SET oldest = :oldest"), {"oldest": oldest})
