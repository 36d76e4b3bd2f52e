"""What the database grows by for each thing that is done, in bytes, and how much of that is the audit trail's.

Of PostgreSQL also the bytes of its log, and transactions, with those that only read.
"""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from configparser import RawConfigParser
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from benchmarks.installation import Installation, answers, installed
from benchmarks.service import Setup
from benchmarks.sign_in import sign_in

CASES = ("opaque", "jwt", "authorize", "code", "refresh")

#: A password takes more processor than all else together.
_MOST_SIGN_INS = 150

_SQLITE = """
SELECT (SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count) * page_size,
    (SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'audit_events')),
    (SELECT count(*) FROM audit_events)
FROM pragma_page_size
"""
_POSTGRESQL = """
SELECT pg_database_size(current_database()), pg_total_relation_size('audit_events'),
    (SELECT count(*) FROM audit_events), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
    (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())
"""


@dataclass(frozen=True)
class Written:
    """Bytes of the database and of its audit trail, audit events, bytes of the log, and transactions.

    The last two are known of PostgreSQL alone.
    """

    size: int
    trail: int
    events: int
    log: int = 0
    transactions: int = 0


def table(setup: Setup, pool: Executor, count: int) -> str:
    """What each of them takes, for people. Raises NotServing, LoadFailed."""
    times = f"each {count:,} times, sign-ins at most {_MOST_SIGN_INS}"
    return "\n".join([f"{setup.title}; {times}", *_lines(setup, pool, count)])


def _lines(setup: Setup, pool: Executor, count: int) -> Iterator[str]:
    more = f"{'log':>8}{'transactions':>14}" if setup.storage == "postgresql" else ""
    yield f"{'':<28}{'bytes':>8}{'of audit':>10}{'events':>8}{more}"
    with installed(setup, pool) as one:
        for title, number, act in _acts(one, pool, count):
            before = _written(one.place.ini)
            act()
            after = _written(one.place.ini)
            size, trail, events, log, transactions = (
                (getattr(after, each.name) - getattr(before, each.name)) / number for each in fields(Written)
            )
            more = f"{log:>8.0f}{transactions:>14.2f}" if setup.storage == "postgresql" else ""
            yield f"{title:<28}{size:>8.0f}{trail:>10.0f}{events:>8.2f}{more}"


def _acts(one: Installation, pool: Executor, count: int) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """What is done, how often, and what does it so often."""
    for name in CASES:
        case = one.cases[name]
        if case.before is not None:
            # What a case is made of is done before, so that it does not count for it.
            answers(case.before, count, one.place, pool)
        yield case.title, count, partial(answers, case, count, one.place, pool, alone=True)
    number = min(count, _MOST_SIGN_INS)

    def sign_ins() -> None:
        for _ in range(number):
            sign_in(one.stock)

    yield "sign-in with a password", number, sign_ins


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
        return Written(*database.execute(_SQLITE).fetchone())
