"""What a commit costs that waits for the disk, by itself: Python's sqlite3 alone, in the same folder as the service."""

import os
import sqlite3
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

_ROWS = 240
#: How long a row is, with what its indexes take of it, some tokens' length.
_LENGTH = 250


@dataclass(frozen=True)
class Commit:
    """Seconds per row, of CPU and on the clock, where ``rows`` share one commit."""

    rows: int
    cpu: float
    elapsed: float

    @classmethod
    def median(cls, several: "list[Commit]") -> "Commit":
        """The median of each figure."""
        cpu, elapsed = (statistics.median(getattr(one, name) for one in several) for name in ("cpu", "elapsed"))
        return cls(several[0].rows, cpu, elapsed)


def of(rows: int, folder: Path) -> Commit:
    """What a row costs in a file of this folder as the service keeps it: write-ahead log, synchronous FULL."""
    path = folder / "commits.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS tokens (digest BLOB PRIMARY KEY, expires_at BIGINT, rest TEXT)")
        connection.execute("CREATE INDEX IF NOT EXISTS expiry ON tokens (expires_at)")
        cpu, started = time.process_time(), time.perf_counter()
        for _ in range(_ROWS // rows):
            connection.execute("BEGIN IMMEDIATE")
            for number in range(rows):
                row = (os.urandom(32), number, "x" * _LENGTH)
                connection.execute("INSERT INTO tokens VALUES (?, ?, ?)", row)
            connection.execute("COMMIT")
        return Commit(rows, (time.process_time() - cpu) / _ROWS, (time.perf_counter() - started) / _ROWS)
    finally:
        connection.close()
