"""A MariaDB server for tests: the installed version, with its own folder and socket.

A fixture with a new database::

    pytest_plugins = ["identity.testing.mariadb"]


    @pytest.fixture
    def url(mariadb_server):
        url = new_database(mariadb_server)
        yield url
        drop_database(mariadb_server, url)
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pymysql
import pytest

#: Set it to fail tests without MariaDB instead of skipping them.
REQUIRED_VARIABLE = "IDENTITY_MARIADB_TESTS"

#: Tests need no durability: without waiting for its disk the server is several times faster.
_OPTIONS = (
    "--skip-networking",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=48M",
    "--max-connections=500",
    "--performance-schema=OFF",
)
#: Seconds that a server may take to start or stop on a busy machine.
_PATIENCE = 120
_FOLDERS = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"


def find_program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_FOLDERS}")


def require_program(name: str) -> str:
    """Path of a MariaDB program. Skips the test if it is not installed, or fails it if REQUIRED_VARIABLE is set."""
    found = find_program(name)
    if found is None:
        reason = f"MariaDB is not installed: there is no {name}"
        if os.environ.get(REQUIRED_VARIABLE) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class MariadbServer:
    """A server with its own folder, reached by a socket in it, or by an address in its options."""

    def __init__(self, folder: Path, options: Sequence[str] = _OPTIONS) -> None:
        self.folder = folder
        self._options = tuple(options)
        self._process: subprocess.Popen[bytes] | None = None
        # As the package's user: the state transfer between nodes does not work as root.
        self._account = ("--user=mysql",) if os.geteuid() == 0 else ()
        # A starting server deletes temporary tables in its temporary folder, including those of other servers.
        self._environ = {**os.environ, "TMPDIR": str(folder / "tmp")}
        for path in (folder, folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)
            if self._account:
                shutil.chown(path, "mysql")
        if not (folder / "data").exists():
            self._install()

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """False before the start and after it ended for any reason."""
        return self._process is not None and self._process.poll() is None

    def url(self, database: str) -> str:
        return f"mariadb://root@localhost/{database}?{urlencode({'unix_socket': str(self.socket)})}"

    def execute(self, *statements: str) -> Any:
        """Run administrative statements; returns the rows of the last one."""
        opened = pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True)
        with closing(opened) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def start(self, *options: str) -> None:
        self.spawn(*options)
        self.wait_until_ready()

    def spawn(self, *options: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program that was found
                [
                    require_program("mariadbd"),
                    "--no-defaults",
                    *self._account,
                    f"--datadir={self.folder / 'data'}",
                    f"--socket={self.socket}",
                    f"--pid-file={self.folder / 'pid'}",
                    *self._options,
                    *options,
                ],
                stdout=log,
                stderr=log,
                env=self._environ,
            )

    def wait_until_ready(self) -> None:
        """Wait until it responds. Raises RuntimeError if it does not."""
        give_up_at = time.monotonic() + _PATIENCE
        while not self._answers():
            if not self.is_running or time.monotonic() > give_up_at:
                raise RuntimeError((self.folder / "log").read_text(errors="replace")[-4000:])
            time.sleep(0.1)

    def _answers(self) -> bool:
        # PyMySQL leaks a socket when connecting fails.
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        try:
            self.execute("SELECT 1")
        except pymysql.Error:
            return False
        return True

    def kill(self) -> None:
        """Kill it, which looks like a crash to its clients; its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE)
            self._process = None

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _install(self) -> None:
        install = [
            require_program("mariadb-install-db"),
            "--no-defaults",
            *self._account,
            f"--datadir={self.folder / 'data'}",
        ]
        arguments = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        ran = subprocess.run(  # noqa: S603
            [*install, *arguments],
            capture_output=True,
            timeout=_PATIENCE * 2,
            env=self._environ,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(ran.stdout + ran.stderr)


@contextmanager
def running_server() -> Iterator[MariadbServer]:
    require_program("mariadbd")
    # Not below pytest's folders: the path of a socket must be short.
    server = MariadbServer(Path(tempfile.mkdtemp(prefix="identity-mariadb-", dir=_room())))
    try:
        server.start()
        yield server
    finally:
        server.close()


def _room() -> str | None:
    return os.environ.get("PYTEST_DEBUG_TEMPROOT")


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariadbServer]:
    with running_server() as server:
        yield server


def new_database(server: MariadbServer) -> str:
    name = f"test_{uuid.uuid4().hex}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin")
    return server.url(name)


def copy_database(server: MariadbServer, url: str) -> str:
    copy = new_database(server)
    client = ["--no-defaults", "--user=root", f"--socket={server.socket}"]
    dump = subprocess.run(  # noqa: S603
        [require_program("mariadb-dump"), *client, "--triggers", _name(url)],
        check=True,
        capture_output=True,
        timeout=_PATIENCE,
    )
    filled = [require_program("mariadb"), *client, _name(copy)]
    subprocess.run(filled, check=True, input=dump.stdout, timeout=_PATIENCE)  # noqa: S603
    return copy


def drop_database(server: MariadbServer, url: str) -> None:
    server.execute(f"DROP DATABASE IF EXISTS {_name(url)}")


def _name(url: str) -> str:
    return urlsplit(url).path.lstrip("/")
