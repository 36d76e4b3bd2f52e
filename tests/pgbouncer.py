"""pgbouncer in front of a PostgreSQL server for tests: each transaction may use another server connection."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_PATIENCE = 30.0
#: The default port, which is part of the name of its Unix socket.
_PORT = 6432

#: A small pool, so that state left on a connection soon affects another transaction.
_CONFIGURATION = """
[databases]
* = host={socket_folder} user=postgres

[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
server_connect_timeout = 3
server_login_retry = 1
logfile = {folder}/pgbouncer.log
"""


class PgbouncerUnavailable(Exception):
    """pgbouncer does not run; the text says why."""


def is_installed() -> bool:
    return _program() is not None


@contextmanager
def running_pgbouncer(server_url: str, *, connections: int = 4) -> Iterator[str]:
    """The URL of the same database through a pgbouncer with this many server connections. Raises
    PgbouncerUnavailable.
    """
    program = _program()
    if program is None:
        raise PgbouncerUnavailable("pgbouncer is not installed")
    parts = urlsplit(server_url)
    with tempfile.TemporaryDirectory(prefix="identity-pgbouncer-") as name:
        folder = Path(name)
        file = folder / "pgbouncer.ini"
        socket_folder = parse_qs(parts.query)["host"][0]
        file.write_text(_CONFIGURATION.format(socket_folder=socket_folder, folder=folder, connections=connections))
        command = [program, str(file)]
        if os.geteuid() == 0:
            # pgbouncer refuses to run as root. The server's socket is in a folder of the server's user.
            owner = Path(socket_folder).stat().st_uid
            os.chown(folder, owner, -1)
            os.chown(file, owner, -1)
            command += ["--user", pwd.getpwuid(owner).pw_name]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(process, folder)
            yield f"postgresql://postgres@{parts.path}?host={folder}&port={_PORT}"
        finally:
            process.kill()
            process.wait()


def _program() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")


def _wait(process: subprocess.Popen[bytes], folder: Path) -> None:
    log = folder / "pgbouncer.log"
    give_up_at = time.monotonic() + _PATIENCE
    while time.monotonic() < give_up_at and process.poll() is None:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(folder / f".s.PGSQL.{_PORT}"))
            return
        time.sleep(0.02)
    raise PgbouncerUnavailable(log.read_text() if log.exists() else "pgbouncer said nothing")
