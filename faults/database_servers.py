"""Our own database servers, which can be stopped, frozen, slowed down and disconnected."""

import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import psutil  # type: ignore[import-untyped]
import psycopg

from faults.database import FaultDatabase, FaultUnavailable
from faults.tcp_proxy import TcpProxy
from identity.testing import mariadb
from identity.testing.postgresql import PostgresqlServer, new_database
from tests.pgbouncer import PgbouncerUnavailable, running_pgbouncer
from tests.process_tree import list_process_tree, signal_process_tree


class FaultDatabaseServer(FaultDatabase):
    """A server behind a proxy, which waits for its disk as in production."""

    proxy: TcpProxy

    def stop(self) -> None:
        """Stop it as its operator would, disconnecting all clients."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it unless it runs, and wait until it responds."""
        raise NotImplementedError

    def kill(self) -> None:
        """Kill all its processes at once. Raises AssertionError if it does not run."""
        processes = list_process_tree(self._list_processes())
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _, alive = psutil.wait_procs(processes, timeout=10)
        if alive:
            raise AssertionError(f"there still are {alive}")

    def freeze(self) -> None:
        """Suspend it; its connections stay open. Raises AssertionError if it does not run."""
        signal_process_tree(self._list_processes(), signal.SIGSTOP)

    @property
    def is_frozen(self) -> bool:
        """True while it is suspended."""
        return bool(psutil.Process(self._list_processes()).status() == psutil.STATUS_STOPPED)

    def thaw(self) -> None:
        """Inverse of ``freeze``."""
        number = self._main_process()
        if number is not None:
            signal_process_tree(number, signal.SIGCONT)

    def _main_process(self) -> int | None:
        """The parent of its processes; None if it does not run."""
        raise NotImplementedError

    def _list_processes(self) -> int:
        number = self._main_process()
        if number is None:
            raise AssertionError("the database's server does not run")
        return number


class PostgresqlFaultServer(FaultDatabaseServer):
    name = "postgresql"
    damaged_bytes_sql = r"'\x00'::bytea"
    digest_sql = "sha256(({text})::bytea)"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = PostgresqlServer(folder / "postgresql")
        try:
            self.direct_url = new_database(self._server)
            parts = urlsplit(self.direct_url)
            self.socket_folder = parse_qs(parts.query)["host"][0]
            self.database = parts.path.lstrip("/")
            self._connect_proxy(f"{self.socket_folder}/.s.PGSQL.5432")
        except BaseException:
            self._server.close()
            raise

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.direct_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def query_number(self, query: str) -> int:
        with psycopg.connect(self.direct_url, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
            return int(row[0]) if row else 0

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self.thaw()
        self.proxy.refuse_connections()
        self._server.close()

    def _main_process(self) -> int | None:
        return self._server.process_id

    def _connect_proxy(self, server: str) -> None:
        """Let the proxy forward to this socket."""
        self.proxy = TcpProxy(server)
        plain = "sslmode=disable&gssencmode=disable"
        self.url = f"postgresql://postgres@127.0.0.1:{self.proxy.port}/{self.database}?{plain}"


class PgbouncerFaultServer(PostgresqlFaultServer):
    """The same behind pgbouncer, which gives each transaction any of a few connections."""

    name = "pgbouncer"
    settings = {"identity.plugin.sql.pooler": "true"}  # noqa: RUF012

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = ExitStack()
        try:
            url = self._stack.enter_context(running_pgbouncer(self.direct_url, connections=8))
        except PgbouncerUnavailable as reason:
            self.close()
            raise FaultUnavailable(str(reason)) from None
        self.proxy.refuse_connections()
        query = parse_qs(urlsplit(url).query)
        self._connect_proxy(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")

    def close(self) -> None:
        self._stack.close()
        super().close()


class MariadbFaultServer(FaultDatabaseServer):
    name = "mariadb"
    digest_sql = "unhex(sha2({text}, 256))"
    _OPTIONS = ("--skip-networking", "--skip-log-bin", "--innodb-log-file-size=48M")
    #: The session settings of the service, for the statements that a fault executes directly.
    _CLIENT_ARGUMENTS: ClassVar[str] = (
        "SET SESSION sql_mode = 'PIPES_AS_CONCAT', tx_isolation = 'READ-COMMITTED', max_recursive_iterations = 1000000"
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = mariadb.MariadbServer(folder / "mariadb", self._OPTIONS)
        try:
            self._server.start()
            self._database = urlsplit(mariadb.new_database(self._server)).path.lstrip("/")
            self.proxy = TcpProxy(str(self._server.socket))
            self.url = f"mariadb://root@127.0.0.1:{self.proxy.port}/{self._database}"
        except BaseException:
            self._server.close()
            raise

    def execute(self, statement: str) -> None:
        self._server.execute(f"USE {self._database}", self._CLIENT_ARGUMENTS, statement)

    def query_number(self, query: str) -> int:
        return int(self._server.execute(f"USE {self._database}", query)[0][0])

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        if not self._server.is_running:
            self._server.start()

    def close(self) -> None:
        self.proxy.refuse_connections()
        self._server.close()

    def _main_process(self) -> int | None:
        return self._server.process_id if self._server.is_running else None
