"""Databases whose disk can be filled up, and whose rows can be damaged."""

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
    """The machine, or its user, cannot bring the fault about; the sentence says why."""


class FaultDatabase:
    """What a service keeps its data in."""

    name: str
    #: A binary value that no program has written, and the digest of a text, in its words.
    damaged_bytes_sql: ClassVar[str] = "X'00'"
    digest_sql: ClassVar[str]
    #: Where it is for all nodes; None for the file beside their ini files.
    url: str | None = None
    #: What they are told besides.
    settings: Mapping[str, str] = {}
    #: For how many seconds who asks about a token may hear what was so before.
    staleness = 0.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url_for_node(self, node: int) -> str | None:
        """What this node of the service is told."""
        return self.url

    def execute(self, statement: str) -> None:
        """Change something behind the service's back."""
        raise NotImplementedError

    def query_number(self, query: str) -> int:
        """What a query answers."""
        raise NotImplementedError

    def fill_disk(self) -> None:
        """Leave no room on its disk. Raises FaultUnavailable if that would be somebody else's disk too."""
        if not os.path.ismount(self.folder):
            raise FaultUnavailable("only root can mount a small disk")
        with (self.folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12, 1):
                _write_until_full(ballast, size)

    def free_disk(self) -> None:
        """The inverse of ``fill_disk``."""
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        """End what runs for it."""


def _write_until_full(file: RawIOBase, size: int) -> None:
    try:
        while True:
            file.write(b"\0" * size)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise


class SqliteDatabase(FaultDatabase):
    """A file, in a folder that other things lie in too."""

    name = "sqlite"
    digest_sql = "randomblob(32)"

    def execute(self, statement: str) -> None:
        """Change the file beside the service."""
        with self._connect() as connection:
            connection.execute(statement)

    def query_number(self, query: str) -> int:
        """What a query answers."""
        with self._connect() as connection:
            return int(connection.execute(query).fetchone()[0])

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / "data" / "identity.sqlite", timeout=30)) as connection, connection:
            yield connection


@contextmanager
def mount_small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """The folder on a disk of its own, of this size. Raises FaultUnavailable."""
    options = f"size={megabytes}m,mode=0755"
    mounting = ["mount", "-t", "tmpfs", "-o", options, "identity-faults", str(folder)]
    done = subprocess.run(mounting, check=False, capture_output=True)
    if done.returncode:
        raise FaultUnavailable("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
