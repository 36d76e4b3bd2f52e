"""Databases whose disks can be filled up, and whose rows can be damaged."""

import errno
import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from io import RawIOBase
from pathlib import Path
from typing import ClassVar


class FaultUnavailable(Exception):
    """The machine or user cannot inject the fault; the text says why."""


class FaultDatabase:
    """The database of a service."""

    name: str
    #: SQL for an invalid binary value, and for the digest of a text.
    damaged_bytes_sql: ClassVar[str] = "X'00'"
    digest_sql: ClassVar[str]
    #: The URL for all nodes; None for the file beside their ini files.
    url: str | None = None
    #: Additional settings of the nodes.
    settings: Mapping[str, str] = {}
    #: Seconds for which introspection may return stale results.
    staleness = 0.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url_for_node(self, node: int) -> str | None:
        """The database URL of this node."""
        return self.url

    def execute(self, statement: str) -> None:
        """Change the database without the service."""
        raise NotImplementedError

    def query_number(self, query: str) -> int:
        """The number that a query returns."""
        raise NotImplementedError

    def fill_disk(self) -> None:
        """Fill up its disk. Raises FaultUnavailable if others use the disk, too."""
        if not os.path.ismount(self.folder):
            raise FaultUnavailable("only root can mount a small disk")
        with (self.folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12, 1):
                _write_until_full(ballast, size)

    def free_disk(self) -> None:
        """Inverse of ``fill_disk``."""
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        """Stop its processes."""


def _write_until_full(file: RawIOBase, size: int) -> None:
    try:
        while True:
            file.write(b"\0" * size)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise


class SqliteDatabase(FaultDatabase):
    """An SQLite file, in a folder with other files."""

    name = "sqlite"
    digest_sql = "randomblob(32)"

    def execute(self, statement: str) -> None:
        with self._connect() as connection:
            connection.execute(statement)

    def query_number(self, query: str) -> int:
        with self._connect() as connection:
            return int(connection.execute(query).fetchone()[0])

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / "data" / "identity.sqlite", timeout=30)) as connection, connection:
            yield connection


@contextmanager
def mount_small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a small disk of this size at the folder. Raises FaultUnavailable."""
    options = f"size={megabytes}m,mode=0755"
    mounting = ["mount", "-t", "tmpfs", "-o", options, "identity-faults", str(folder)]
    done = subprocess.run(mounting, check=False, capture_output=True)
    if done.returncode:
        raise FaultUnavailable("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
