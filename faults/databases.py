"""Databases that can be stopped, frozen, slowed down, filled up and damaged."""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import psutil  # type: ignore[import-untyped]
import psycopg

from faults.relay import Relay
from identity.testing.pgbouncer import NotStarted, pooled
from identity.testing.postgresql import PostgresqlServer, new_database


class Unsuitable(Exception):
    """The machine, or its user, cannot bring the fault about; the sentence says why."""


class Database:
    """What a service keeps its data in."""

    name: str
    #: What the nodes are told; None for the file beside their ini files.
    url: str | None = None
    #: What they are told besides.
    settings: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def execute(self, statement: str) -> None:
        """Change something behind the service's back."""
        raise NotImplementedError

    def number(self, query: str) -> int:
        """What a query answers."""
        raise NotImplementedError

    def fill_up(self) -> None:
        """Leave no room on its disk. Raises Unsuitable if that would be somebody else's disk too."""
        if not os.path.ismount(self.folder):
            raise Unsuitable("only root can mount a small disk")
        with (self.folder / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        ballast.write(b"\0" * size)

    def make_room(self) -> None:
        """The inverse of ``fill_up``."""
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        """End what runs for it."""


class Sqlite(Database):
    """A file, in a folder that other things lie in too."""

    name = "sqlite"

    def execute(self, statement: str) -> None:
        """Change the file beside the service."""
        with self._connected() as connection:
            connection.execute(statement)

    def number(self, query: str) -> int:
        """What a query answers."""
        with self._connected() as connection:
            return int(connection.execute(query).fetchone()[0])

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / "data" / "identity.sqlite", timeout=30)) as connection, connection:
            yield connection


class Postgresql(Database):
    """A server of our own behind a relay, which waits for its disk as in production."""

    name = "postgresql"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = PostgresqlServer(folder / "postgresql")
        try:
            self.direct_url = new_database(self._server)
            parts = urlsplit(self.direct_url)
            self.socket_folder = parse_qs(parts.query)["host"][0]
            self.database = parts.path.lstrip("/")
            self._put_before(f"{self.socket_folder}/.s.PGSQL.5432")
        except BaseException:
            self._server.close()
            raise

    def execute(self, statement: str) -> None:
        """Change it by a connection of its own."""
        with psycopg.connect(self.direct_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def number(self, query: str) -> int:
        """What a query answers."""
        with psycopg.connect(self.direct_url, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
            return int(row[0]) if row else 0

    def _put_before(self, server: str) -> None:
        """Let the relay pass on to this socket."""
        self.relay = Relay(server)
        plain = "sslmode=disable&gssencmode=disable"
        self.url = f"postgresql://postgres@127.0.0.1:{self.relay.port}/{self.database}?{plain}"

    def stop(self) -> None:
        """Stop it as its operator would, throwing everybody out."""
        self._server.stop()

    def kill(self) -> None:
        """End all its processes at once."""
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._processes(), timeout=10)

    def start(self) -> None:
        """Return when it answers again."""
        self._server.start()

    def freeze(self) -> None:
        """Have it do nothing, while its connections stay."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """The inverse of ``freeze``."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and delete its data."""
        self.thaw()
        self.relay.gone()
        self._server.close()

    def _signal(self, number: int) -> None:
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _processes(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._server.process_id)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


class Pooled(Postgresql):
    """The same behind pgbouncer, which gives each transaction any of a few connections."""

    name = "pgbouncer"
    settings: ClassVar[Mapping[str, str]] = {"identity.plugin.sql.pooler": "true"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = ExitStack()
        try:
            url = self._stack.enter_context(pooled(self.direct_url, connections=8))
        except NotStarted as reason:
            self.close()
            raise Unsuitable(str(reason)) from None
        self.relay.gone()
        query = parse_qs(urlsplit(url).query)
        self._put_before(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")

    def close(self) -> None:
        """End both."""
        self._stack.close()
        super().close()


_KINDS: Mapping[str, type[Database]] = {kind.name: kind for kind in (Sqlite, Postgresql, Pooled)}


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Database]:
    """A new database in this folder."""
    database = _KINDS[kind](folder)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """The folder on a disk of its own, of this size. Raises Unsuitable."""
    options = f"size={megabytes}m,mode=0755"
    mounting = ["mount", "-t", "tmpfs", "-o", options, "identity-faults", str(folder)]
    done = subprocess.run(mounting, check=False, capture_output=True)
    if done.returncode:
        raise Unsuitable("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
