"""Alembic's environment. This module itself knows the revisions without loading alembic.

Revisions are numbered. Each names the oldest one whose programs work with the schema that it leaves (``oldest``), so
that nodes can be replaced one by one: migrate first, then restart. The database holds that beside its revision, for
programs that do not know it.

PostgreSQL's revisions are a transaction each, beside which others read and write. Whoever makes an index of a table
that is there takes ``add_index`` for it, which commits what stands before it: that says ``IF NOT EXISTS``.

MariaDB commits each change of a schema by itself. Whoever writes a revision says there ``IF NOT EXISTS``, ``IF EXISTS``
or ``OR REPLACE``, so that one that was killed is gone on with by the next run: a test kills each after every statement.

A revision that has landed never changes: databases were made by it. It imports nothing of ours but ``indexes``, which
never changes either; ``hashes.txt`` holds what they were.
"""

from pathlib import Path

from identity.storage.errors import StorageUnavailable

#: Every revision that this version knows, oldest first.
REVISIONS = tuple(sorted(path.name[:4] for path in Path(__file__).parent.glob("versions/[0-9]*.py")))
HEAD = REVISIONS[-1]

#: What an operator is told to do about a schema that is missing or old.
MIGRATE_HINT = "Run `identity migrate -c INI`."


def require_usable_revision(stored: str, oldest: str | None) -> None:
    """Raise StorageUnavailable, saying what to do, unless we can use a schema of this revision, which says
    ``oldest``."""
    if stored == HEAD:
        return
    if stored not in REVISIONS and oldest in REVISIONS:
        # Newer than we are, and made so that we can go on.
        return
    require_known_revision(stored)
    raise StorageUnavailable(f"The database's schema ({stored}) is older than this version ({HEAD}). {MIGRATE_HINT}")


def require_known_revision(stored: str | None) -> None:
    """Raise StorageUnavailable if the revision is not one of ours."""
    if stored is not None and stored not in REVISIONS:
        raise StorageUnavailable(
            f"The database's schema ({stored}) is newer than this version ({HEAD}): install the version that made it."
        )
