"""Database servers of our own that can be stopped, frozen, slowed down and cut off."""

import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import psutil  # type: ignore[import-untyped]
import psycopg

from faults.databases import Database, Unsuitable
from faults.relay import Relay
from identity.testing import mariadb
from identity.testing.pgbouncer import NotStarted, pooled
from identity.testing.postgresql import PostgresqlServer, new_database
from identity.testing.processes import family, signal_family


class Server(Database):
    """A server behind a relay, which waits for its disk as in production."""

    relay: Relay

    def stop(self) -> None:
        """Stop it as its operator would, throwing everybody out."""
        raise NotImplementedError

    def start(self) -> None:
        """Return when it answers again; it may not have ended."""
        raise NotImplementedError

    def kill(self) -> None:
        """End all its processes at once. Raises AssertionError if it does not run."""
        processes = family(self._running())
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _, alive = psutil.wait_procs(processes, timeout=10)
        if alive:
            raise AssertionError(f"there still are {alive}")

    def freeze(self) -> None:
        """Have it do nothing, while its connections stay. Raises AssertionError if it does not run."""
        signal_family(self._running(), signal.SIGSTOP)

    @property
    def is_frozen(self) -> bool:
        """True while it does nothing."""
        return bool(psutil.Process(self._running()).status() == psutil.STATUS_STOPPED)

    def thaw(self) -> None:
        """The inverse of ``freeze``."""
        number = self._first_process()
        if number is not None:
            signal_family(number, signal.SIGCONT)

    def _first_process(self) -> int | None:
        """The process whose children are the others, None if it does not run."""
        raise NotImplementedError

    def _running(self) -> int:
        number = self._first_process()
        if number is None:
            raise AssertionError("the database's server does not run")
        return number


class Postgresql(Server):
    """PostgreSQL."""

    name = "postgresql"
    damage = r"'\x00'::bytea"
    digest = "sha256(({text})::bytea)"

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

    def stop(self) -> None:
        """Stop it as its operator would, throwing everybody out."""
        self._server.stop()

    def start(self) -> None:
        """Return when it answers again; it may not have ended."""
        self._server.start()

    def close(self) -> None:
        """End it and delete its data."""
        self.thaw()
        self.relay.gone()
        self._server.close()

    def _first_process(self) -> int | None:
        return self._server.process_id

    def _put_before(self, server: str) -> None:
        """Let the relay pass on to this socket."""
        self.relay = Relay(server)
        plain = "sslmode=disable&gssencmode=disable"
        self.url = f"postgresql://postgres@127.0.0.1:{self.relay.port}/{self.database}?{plain}"


class Pooled(Postgresql):
    """The same behind pgbouncer, which gives each transaction any of a few connections."""

    name = "pgbouncer"
    settings = {"identity.plugin.sql.pooler": "true"}  # noqa: RUF012

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


class Mariadb(Server):
    """MariaDB."""

    name = "mariadb"
    digest = "unhex(sha2({text}, 256))"
    _OPTIONS = ("--skip-networking", "--skip-log-bin", "--innodb-log-file-size=48M")
    #: How we speak to it: as the others do, and in nobody's way.
    _WORDS: ClassVar[str] = (
        "SET SESSION sql_mode = 'PIPES_AS_CONCAT', tx_isolation = 'READ-COMMITTED', max_recursive_iterations = 1000000"
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = mariadb.MariadbServer(folder / "mariadb", self._OPTIONS)
        try:
            self._server.start()
            self._database = urlsplit(mariadb.new_database(self._server)).path.lstrip("/")
            self.relay = Relay(str(self._server.socket))
            self.url = f"mariadb://root@127.0.0.1:{self.relay.port}/{self._database}"
        except BaseException:
            self._server.close()
            raise

    def execute(self, statement: str) -> None:
        """Change it by a connection of its own."""
        self._server.execute(f"USE {self._database}", self._WORDS, statement)

    def number(self, query: str) -> int:
        """What a query answers."""
        return int(self._server.execute(f"USE {self._database}", query)[0][0])

    def stop(self) -> None:
        """Stop it as its operator would, throwing everybody out."""
        self._server.stop()

    def start(self) -> None:
        """Return when it answers again; it may not have ended."""
        if not self._server.runs:
            self._server.start()

    def close(self) -> None:
        """End it and delete its data."""
        self.relay.gone()
        self._server.close()

    def _first_process(self) -> int | None:
        return self._server.process_id if self._server.runs else None
