"""Growth of the database per request in bytes, on PostgreSQL including its write-ahead log."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from functools import partial

from benchmarks.browser_sign_in import sign_in_visitor
from benchmarks.installations import Installation, collect_responses, install_service
from benchmarks.service_process import Deployment, ServiceConfiguration
from benchmarks.targets import TargetResult

CASES = ("opaque", "jwt", "authorize", "code", "refresh")
_MAX_SIGN_INS = 150
_SQLITE = """SELECT (page_count - freelist_count) * page_size, 0
FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
_POSTGRESQL = "SELECT pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"


def measure_disk_usage(storage: str, pool: Executor, count: int) -> tuple[list[str], list[TargetResult]]:
    """Bytes per request of each case; at most 150 sign-ins. Raises ServiceStartError, UnexpectedResponse."""
    lines = [f"{f'{storage}, {count:,} of each':<44}{'bytes':>8}{'log':>8}"]
    with install_service(ServiceConfiguration(storage), pool) as installation:
        for title, number, act in _perform_requests(installation, pool, count):
            size, log = _database_size(installation.deployment)
            act()
            grown = [
                (after - before) / number
                for after, before in zip(_database_size(installation.deployment), (size, log), strict=True)
            ]
            lines.append(f"{title:<44}{grown[0]:>8.0f}{grown[1]:>8.0f}")
    return lines, []


def _perform_requests(
    installation: Installation, pool: Executor, count: int
) -> Iterator[tuple[str, int, Callable[[], object]]]:
    for case in (installation.cases[name] for name in CASES):
        if case.source_case is not None:
            collect_responses(case.source_case, count, installation.deployment, pool)
        requests = partial(collect_responses, case, count, installation.deployment, pool, alone=True)
        yield case.name, count, requests
    number = min(count, _MAX_SIGN_INS)
    yield "sign-in with a password", number, lambda: list(map(sign_in_visitor, [installation.fixtures] * number))


def _database_size(deployment: Deployment) -> tuple[int, int]:
    if deployment.database_url is None:
        with closing(sqlite3.connect(deployment.ini.parent / "data" / "identity.sqlite")) as database:
            size, log = database.execute(_SQLITE).fetchone()
    else:
        import psycopg

        with psycopg.connect(deployment.database_url.replace("+psycopg", ""), autocommit=True) as connection:
            size, log = connection.execute(_POSTGRESQL).fetchone() or (0, 0)
    return int(size), int(log)
