"""Fills tables with copies of rows that the service itself has stored.

Their ids and digests are random, as in production, so that indexes have realistic depth and cache hit rates.
"""

import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import randrange
from typing import Any

from benchmarks.service_process import Deployment

#: Tokens stored per application, per refresh token and per user.
PER_APPLICATION, _PER_FAMILY, _PER_USER = 100, 10, 500
#: Maximum bytes on disk per token, including its indexes.
_COPY_BATCH_SIZE = 900
#: Seconds between the expiry of expired copies and of the original, and seconds over which the expiry of all copies is
#: spread.
_EXPIRED_SECONDS, _SPAN = 10 * 86400, 36000

#: For columns that differ from the original: a function of the copy's number and the original's value.
_Changes = Mapping[str, Callable[[int, Any], Any]]


class DiskTooSmall(Exception):
    """The disk has no room for a large database."""


def fill_database(deployment: Deployment, tokens: int, *, expired: bool = False) -> None:
    """Store this many tokens, with applications, users and refresh tokens in proportion.

    The tokens expire in some hours or, with ``expired``, expired days ago, one after the other. There must be one of
    each kind, and nothing may use the database meanwhile. Raises DiskTooSmall.
    """
    database = deployment.ini.parent / "data" / "identity.sqlite"
    folder = Path(tempfile.gettempdir()) if deployment.database_url else database.parent
    if (free := shutil.disk_usage(folder).free) < 2 * tokens * _COPY_BATCH_SIZE:
        raise DiskTooSmall(
            f"{2 * tokens * _COPY_BATCH_SIZE >> 30} GB are needed for a large database, {free >> 30} GB are free"
        )
    if deployment.database_url:
        _fill_postgresql(deployment.database_url, tokens, expired=expired)
        return
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        # No durability is needed.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF", "cache_size = -2000000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        for table, names, rows in _copy_rows(connection, tokens, expired=expired):
            placeholders = ", ".join("?" * len(names))
            connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders})", rows)  # noqa: S608
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


def _fill_postgresql(url: str, tokens: int, *, expired: bool) -> None:
    import psycopg
    from psycopg.types.string import TextLoader

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for kind in ("json", "jsonb"):
            connection.adapters.register_loader(kind, TextLoader)
        # References are known to be valid: skip the checks.
        connection.execute("SET session_replication_role = replica")
        for table, names, rows in _copy_rows(connection, tokens, expired=expired):
            with connection.cursor().copy(f"COPY {table} ({', '.join(names)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _copy_rows(connection: Any, tokens: int, *, expired: bool) -> Iterator[tuple[str, list[str], Iterator[list[Any]]]]:
    for table, where, count, changes in _copy_plans(tokens, expired=expired):
        cursor: Any = connection.execute(f"SELECT * FROM {table} WHERE {where} LIMIT 1")  # noqa: S608
        names, original = [column[0] for column in cursor.description], cursor.fetchone()
        changed = [changes.get(name, lambda number, value: value) for name in names]
        rows = (
            [change(number, value) for change, value in zip(changed, original, strict=True)] for number in range(count)
        )
        yield table, names, rows


def _copy_plans(tokens: int, *, expired: bool) -> Iterator[tuple[str, str, int, _Changes]]:
    """For each table: the row to copy, how often, and what differs."""
    applications, users = max(1, tokens // PER_APPLICATION), max(1, tokens // _PER_USER)
    families = max(1, tokens // _PER_FAMILY)
    id_, application_id, name = "00000000-0000-7000-8000-{:012x}".format, "{:032x}".format, "robot{}".format

    def one_of(count: int, named: Callable[[int], str] = id_) -> Callable[[int, Any], str]:
        return lambda *_: named(randrange(count))  # noqa: S311

    def later(_: int, value: int) -> int:
        return value + randrange(_SPAN)  # noqa: S311

    def earlier(number: int, value: int) -> int:
        return value - _EXPIRED_SECONDS + number * _SPAN // tokens

    user, application = one_of(users), one_of(applications, application_id)
    new = {"id": lambda *_: str(uuid.uuid4()), "digest": lambda *_: os.urandom(32)}
    over = {**new, "expires_at": earlier if expired else later}
    started: _Changes = {"user_id": user, "client_id": application}
    by_family: _Changes = {"family_id": one_of(families), "application_id": application, "client_id": application}
    by_key: _Changes = {"user_id": user, "subject": user, "client_id": user, "key_id": user}
    yield "applications", "type = 'web'", applications, {"id": application_id}
    yield "client_secrets", "true", applications, {"id": id_, "application_id": application_id}
    yield "users", "kind = 'service'", users, {"id": id_, "user_name": name, "name_key": name}
    yield "service_user_keys", "true", users, {"id": id_, "user_id": id_}
    yield "token_families", "true", families, {"id": id_, **started}
    yield "refresh_tokens", "rotated_at IS NULL", families, {**new, **started, "family_id": id_, "expires_at": later}
    yield "access_tokens", "family_id IS NOT NULL", families, {**over, **by_family}
    yield "access_tokens", "key_id IS NOT NULL", tokens - families, {**over, **by_key}
