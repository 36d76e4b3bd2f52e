"""Alembic environment. This module itself lists the revisions without loading alembic.

Revisions are numbered. Each declares the oldest revision whose versions work with its schema (``oldest``), so that
nodes can be replaced one by one: migrate first, then restart. The database stores that beside its revision, for
versions that do not know it.

On PostgreSQL each revision is a transaction, during which others read and write. To index an existing table use
``add_index``, which commits what precedes it: that must say ``IF NOT EXISTS``.

MariaDB commits each schema change by itself. A revision must say ``IF NOT EXISTS``, ``IF EXISTS`` or ``OR REPLACE``
there, so that the next run resumes an interrupted one: a test kills each after every statement.

A released revision never changes: databases were created by it. It imports nothing of ours but ``indexes``, which
never changes either; ``hashes.txt`` records their hashes.
"""

from pathlib import Path

from identity.storage.errors import StorageUnavailable

#: Every revision that this version knows, oldest first.
REVISIONS = tuple(sorted(path.name[:4] for path in Path(__file__).parent.glob("versions/[0-9]*.py")))
HEAD = REVISIONS[-1]

#: Advice to the operator about a missing or old schema.
MIGRATE_HINT = "Run `identity migrate -c INI`."


def require_usable_revision(stored: str, oldest: str | None) -> None:
    """Raise StorageUnavailable, with advice, unless this version can use a schema of this revision, whose ``oldest`` is
    given."""
    if stored == HEAD:
        return
    if stored not in REVISIONS and oldest in REVISIONS:
        # Newer than this version, but compatible with it.
        return
    require_known_revision(stored)
    raise StorageUnavailable(f"The database's schema ({stored}) is older than this version ({HEAD}). {MIGRATE_HINT}")


def require_known_revision(stored: str | None) -> None:
    """Raise StorageUnavailable if the revision is unknown."""
    if stored is not None and stored not in REVISIONS:
        raise StorageUnavailable(
            f"The database's schema ({stored}) is newer than this version ({HEAD}): install the version that made it."
        )
