"""Running migrations; imports alembic, so it is imported for that alone."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, Engine, text

from identity.plugins.sql import tables
from identity.plugins.sql.mariadb import MARIADB
from identity.plugins.sql.migrations import HEAD, mariadb, refuse_newer
from identity.storage.errors import Unavailable

#: Any number, but the same for all who migrate this schema.
_ADVISORY_LOCK = 7_203_115_406

#: Since this revision the database holds which versions can work with it.
_TELLS_OLDEST = "0007"


def script_directory() -> ScriptDirectory:
    """Alembic's view of the folder of revisions."""
    return ScriptDirectory(str(Path(__file__).parent))


def run(engine: Engine) -> list[str]:
    """Apply what is due, all or nothing, while others who try the same wait; tell what was applied.

    With MariaDB, which commits each change of a schema by itself, what was begun is gone on with by the next one.
    """
    with engine.begin() as connection:
        take_turn(connection)
        lines = _due(connection)
        if lines:
            upgrade(connection)
    return lines


def take_turn(connection: Connection) -> None:
    """Wait until nobody else migrates; SQLite's transaction alone sees to that."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    if connection.dialect.name == MARIADB:
        # Until the connection is closed.
        connection.execute(text("SELECT GET_LOCK(CONCAT(DATABASE(), '.migrating'), 86400)"))


def stored_revision(connection: Connection) -> str | None:
    """The revision of the schema that is there; None if there is none."""
    return MigrationContext.configure(connection).get_current_revision()


def due(engine: Engine) -> list[str]:
    """Tell what ``run`` would apply."""
    with engine.connect() as connection:
        return _due(connection)


def everything() -> list[str]:
    """Tell what ``run`` would apply where there is no database yet."""
    return _after("base")


def _due(connection: Connection) -> list[str]:
    stored = stored_revision(connection)
    refuse_newer(stored)
    return _after(stored or "base")


def _after(stored: str) -> list[str]:
    revisions = script_directory().iterate_revisions(HEAD, stored)
    return [f"{revision.revision}: {revision.doc}{_effect(revision, stored)}" for revision in reversed(list(revisions))]


def _effect(revision: Script, stored: str) -> str:
    """What becomes of nodes that run with the stored schema."""
    if stored == "base":
        return ""
    goes_on = oldest_of(revision) <= stored
    return " Nodes of the present version go on." if goes_on else " Stop all nodes of the present version first."


def oldest_of(revision: Script) -> str:
    """The oldest revision whose programs work with the schema that this one leaves."""
    oldest: str = revision.module.oldest
    return oldest


def upgrade(connection: Connection, revision: str = HEAD) -> None:
    """Apply what leads to this revision, in the transaction that has begun. Raises Unavailable."""
    script = script_directory()
    if connection.dialect.name == MARIADB and stored_revision(connection) is None:
        if revision < mariadb.BEGINS_WITH:
            raise Unavailable(f"With MariaDB the first schema is {mariadb.BEGINS_WITH}, not {revision}.")
        mariadb.begin(connection)
        MigrationContext.configure(connection).stamp(script, mariadb.BEGINS_WITH)

    def steps(stored: str | tuple[str, ...], _context: MigrationContext) -> list[RevisionStep]:
        return script._upgrade_revs(revision, stored)  # type: ignore[arg-type]

    with EnvironmentContext(Config(), script, fn=steps, destination_rev=revision) as environment:
        environment.configure(connection=connection, target_metadata=tables.metadata, transaction_per_migration=False)
        environment.run_migrations()
    if revision >= _TELLS_OLDEST:
        oldest = oldest_of(script.get_revision(revision))
        connection.execute(text("UPDATE alembic_version SET oldest = :oldest"), {"oldest": oldest})
