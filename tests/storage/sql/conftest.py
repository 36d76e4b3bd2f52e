"""Databases for the tests of the SQL storage: SQLite files, and a PostgreSQL server that the tests bring along."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.tables import metadata
from identity.storage.contract.transaction_manager import ContractTransactionManager
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

if TYPE_CHECKING:
    from identity.testing.mariadb import MariadbServer

#: Thirty times as fast as TRUNCATE, which creates new files. The replica role skips the triggers that refuse deletion.
_EMPTY = "; ".join(
    [
        "SET session_replication_role = replica",
        *(f"DELETE FROM {name}" for name in metadata.tables),  # noqa: S608
        "ALTER SEQUENCE audit_events_sequence_seq RESTART",
    ]
)


def open_backend(url: str) -> SqlBackend:
    return SqlBackend(SqlPluginSettings(url=url))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite file."""
    path = tmp_path_factory.mktemp("template") / "identity.db"
    backend = open_backend(f"sqlite:///{path}")
    backend.migrate()
    backend.close()
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A migrated, empty SQLite database."""
    path = tmp_path / "identity.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def postgresql_database(postgresql_server: PostgresqlServer) -> Iterator[str]:
    """A migrated database, shared by all tests of this worker."""
    url = new_database(postgresql_server)
    backend = open_backend(url)
    backend.migrate()
    backend.close()
    yield url
    drop_database(postgresql_server, url)


@pytest.fixture
def postgresql_url(postgresql_database: str) -> Iterator[str]:
    """A migrated, empty PostgreSQL database. Emptying a database is faster than creating one."""
    yield postgresql_database
    with psycopg.connect(postgresql_database, autocommit=True) as connection:
        connection.execute(_EMPTY)


@pytest.fixture(scope="session")
def mariadb_database(mariadb_server: "MariadbServer") -> Iterator[str]:
    """A migrated database, shared by all tests of this worker."""
    from identity.testing import mariadb

    url = mariadb.new_database(mariadb_server)
    backend = open_backend(url)
    backend.migrate()
    backend.close()
    yield url
    mariadb.drop_database(mariadb_server, url)


@pytest.fixture
def mariadb_url(mariadb_database: str, mariadb_server: "MariadbServer") -> Iterator[str]:
    """A migrated, empty MariaDB database."""
    yield mariadb_database
    name = urlsplit(mariadb_database).path.lstrip("/")
    # A trigger refuses DELETE on audit events; TRUNCATE replaces the table.
    emptied = [f"DELETE FROM {name}.{table}" for table in metadata.tables if table != "audit_events"]  # noqa: S608
    mariadb_server.execute("SET SESSION foreign_key_checks = 0", *emptied, f"TRUNCATE TABLE {name}.audit_events")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """A migrated, empty database of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def backend(url: str) -> Iterator[SqlBackend]:
    backend = open_backend(url)
    yield backend
    backend.close()


@pytest.fixture
def reopen(url: str) -> Callable[[], SqlBackend]:
    """Opens the same database again, also in another process."""
    return partial(SqlBackend, SqlPluginSettings(url=url))


@pytest.fixture
def transactions() -> ContractTransactionManager:
    return ContractTransactionManager()
