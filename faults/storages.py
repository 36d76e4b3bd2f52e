"""What the service can keep its data in here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from faults.databases import Database, Sqlite
from faults.galera import Galera
from faults.servers import Mariadb, Pooled, Postgresql
from identity.testing import galera
from identity.testing.mariadb import find_program

_KINDS: Mapping[str, type[Database]] = {kind.name: kind for kind in (Sqlite, Postgresql, Pooled, Mariadb, Galera)}
STORAGES = tuple(_KINDS)
#: Those that are tried unless one is asked for.
USUAL = tuple(name for name in STORAGES if name != Pooled.name)


def missing(kind: str) -> str | None:
    """Why it cannot be tried here; None if it can."""
    if kind == Galera.name:
        return galera.missing()
    if kind == Mariadb.name and find_program("mariadbd") is None:
        return "MariaDB is not installed"
    return None


def faults_of(kind: str) -> str:
    """The storage whose faults it has."""
    return Postgresql.name if kind == Pooled.name else kind


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Database]:
    """A new database in this folder."""
    database = _KINDS[kind](folder)
    try:
        yield database
    finally:
        database.close()
