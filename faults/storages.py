"""The storages available here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from faults.database import FaultDatabase, SqliteDatabase
from faults.database_servers import MariadbFaultServer, PgbouncerFaultServer, PostgresqlFaultServer
from faults.galera_database import GaleraDatabase
from identity.testing.mariadb import find_program
from tests import galera

_DATABASE_CLASSES: Mapping[str, type[FaultDatabase]] = {
    kind.name: kind
    for kind in (SqliteDatabase, PostgresqlFaultServer, PgbouncerFaultServer, MariadbFaultServer, GaleraDatabase)
}
STORAGES = tuple(_DATABASE_CLASSES)
#: Storages tested by default.
DEFAULT_STORAGES = tuple(name for name in STORAGES if name != PgbouncerFaultServer.name)


def unavailable_reason(kind: str) -> str | None:
    """Why the storage cannot be tested here; None if it can."""
    if kind == GaleraDatabase.name:
        return galera.missing_requirement()
    if kind == MariadbFaultServer.name and find_program("mariadbd") is None:
        return "MariaDB is not installed"
    return None


def storage_with_same_faults(kind: str) -> str:
    """The storage with the same faults."""
    return PostgresqlFaultServer.name if kind == PgbouncerFaultServer.name else kind


@contextmanager
def create_database(kind: str, folder: Path) -> Iterator[FaultDatabase]:
    """A new database in this folder."""
    database = _DATABASE_CLASSES[kind](folder)
    try:
        yield database
    finally:
        database.close()
