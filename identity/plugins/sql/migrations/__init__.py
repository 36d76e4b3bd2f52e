"""Alembic's environment. This module itself knows the revisions without loading alembic.

Revisions are numbered. Each must leave a schema with which the version before it still works, so that nodes can be
replaced one by one: migrate first, then restart.
"""

from pathlib import Path

from identity.storage.errors import Unavailable

#: Every revision that this version knows, oldest first.
REVISIONS = tuple(sorted(one.name[:4] for one in Path(__file__).parent.glob("versions/[0-9]*.py")))
HEAD = REVISIONS[-1]

#: What an operator is told to do about a schema that is missing or old.
MIGRATE = "Run `identity migrate -c INI`."


def fits(stored: str) -> None:
    """Raise Unavailable, saying what to do, unless a schema of this revision can be used."""
    if stored == HEAD or is_next(stored):
        return
    refuse_newer(stored)
    raise Unavailable(f"The database's schema ({stored}) is older than this version ({HEAD}). {MIGRATE}")


def refuse_newer(stored: str | None) -> None:
    """Raise Unavailable if the revision is not one of ours."""
    if stored is not None and stored not in REVISIONS:
        raise Unavailable(
            f"The database's schema ({stored}) is newer than this version ({HEAD}): install the version that made it."
        )


def is_next(stored: str) -> bool:
    """True for the revision right after ours, which is made to fit us as well."""
    return stored.isdecimal() and int(stored) == int(HEAD) + 1
