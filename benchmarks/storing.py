"""Bytes by which the database grows with each request, on PostgreSQL also those of its write-ahead log."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing

from benchmarks.installation import Installation, answers, installed
from benchmarks.service import Place, Setup
from benchmarks.sign_in import sign_in
from benchmarks.targets import Verdict

CASES = ("opaque", "jwt", "authorize", "code", "refresh")
_MOST_SIGN_INS = 150
_SQLITE = """SELECT (page_count - freelist_count) * page_size, 0
FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
_POSTGRESQL = "SELECT pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"


def find(storage: str, pool: Executor, count: int) -> tuple[list[str], list[Verdict]]:
    """The bytes of each, sign-ins at most 150. Raises NotServing, LoadFailed."""
    lines = [f"{f'{storage}, {count:,} of each':<44}{'bytes':>8}{'log':>8}"]
    with installed(Setup(storage), pool) as one:
        for title, number, act in _acts(one, pool, count):
            size, log = _size(one.place)
            act()
            grown = [(after - before) / number for after, before in zip(_size(one.place), (size, log), strict=True)]
            lines.append(f"{title:<44}{grown[0]:>8.0f}{grown[1]:>8.0f}")
    return lines, []


def _acts(one: Installation, pool: Executor, count: int) -> Iterator[tuple[str, int, Callable[[], object]]]:
    for case in (one.cases[name] for name in CASES):
        if case.before is not None:
            answers(case.before, count, one.place, pool)
        yield case.name, count, lambda case=case: answers(case, count, one.place, pool, alone=True)  # type: ignore[misc]
    number = min(count, _MOST_SIGN_INS)
    yield "sign-in with a password", number, lambda: list(map(sign_in, [one.known] * number))


def _size(place: Place) -> tuple[int, int]:
    if place.database_url is None:
        with closing(sqlite3.connect(place.ini.parent / "data" / "identity.sqlite")) as database:
            size, log = database.execute(_SQLITE).fetchone()
    else:
        import psycopg

        with psycopg.connect(place.database_url.replace("+psycopg", ""), autocommit=True) as connection:
            size, log = connection.execute(_POSTGRESQL).fetchone() or (0, 0)
    return int(size), int(log)
