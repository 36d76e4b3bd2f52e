"""What the database grows by for each thing that is done, in bytes.

Of PostgreSQL also the bytes of its log, and transactions, with those that only read.
"""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import Executor
from configparser import RawConfigParser
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.installation import answers, installed
from benchmarks.service import Setup

CASES = ("opaque", "jwt", "authorize", "code", "refresh")

_OF_FILE = ("page_count", "freelist_count", "page_size")
_POSTGRESQL = """
SELECT pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
    (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())
"""


@dataclass(frozen=True)
class Written:
    """Bytes of the database and of its log, and transactions; of SQLite the first alone is known."""

    size: int
    log: int = 0
    transactions: int = 0


def table(setup: Setup, pool: Executor, count: int) -> str:
    """What each of them takes, for people. Raises NotServing, LoadFailed."""
    return "\n".join([f"{setup.title}; each {count:,} times", *_lines(setup, pool, count)])


def _lines(setup: Setup, pool: Executor, count: int) -> Iterator[str]:
    more = f"{'log':>8}{'transactions':>14}" if setup.storage == "postgresql" else ""
    yield f"{'':<28}{'bytes':>8}{more}"
    with installed(setup, pool) as one:
        for name in CASES:
            case = one.cases[name]
            if case.before is not None:
                # What a case is made of is done before, so that it does not count for it.
                answers(case.before, count, one.place, pool)
            before = _written(one.place.ini)
            answers(case, count, one.place, pool, alone=True)
            after = _written(one.place.ini)
            spent = (after.size - before.size, after.log - before.log, after.transactions - before.transactions)
            size, log, transactions = (each / count for each in spent)
            more = f"{log:>8.0f}{transactions:>14.2f}" if setup.storage == "postgresql" else ""
            yield f"{case.title:<28}{size:>8.0f}{more}"


def _written(ini: Path) -> Written:
    settings = RawConfigParser()
    settings.read(ini, "utf-8")
    url = settings["app:main"].get("identity.plugin.sql.url", "").replace("%%", "%")
    if url.startswith("postgresql"):
        import psycopg

        with closing(psycopg.connect(url.replace("+psycopg", ""), autocommit=True)) as connection:
            # Sessions tell of their commits once a second at most.
            connection.execute("SELECT pg_sleep(1.5)")
            row = connection.execute(_POSTGRESQL).fetchone()
        return Written(*(int(value) for value in row or ()))
    with closing(sqlite3.connect(ini.parent / "data" / "identity.sqlite")) as database:
        pages, free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in _OF_FILE)
    return Written((pages - free) * size)
