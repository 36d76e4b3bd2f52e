"""Much is stored: copies of what the service itself has stored, put into the tables themselves; on PostgreSQL tokens
of one service user alone.

They have other ids and digests, random as in life, so that indexes are as deep and as little in the cache.
"""

import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

#: For each application so many tokens are stored, and for each refresh token and each user.
PER_APPLICATION, _PER_FAMILY, _PER_USER = 100, 10, 500
#: Bytes on the disk that a token takes at most, with its indexes.
_SIZE = 900
_BATCH = 500_000
#: Seconds by which what has expired did so before what is copied.
_LONG_AGO = 10 * 86400

#: The numbers of the copies of one batch.
_NUMBERS = "WITH RECURSIVE numbers(number) AS (SELECT ? UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < ?)"
#: What stands in a copy, as SQL: ids are made of numbers, so that all that is referred to is there.
_APPLICATION_ID = "printf('%032x', number)"
_ID = "printf('00000000-0000-7000-8000-%012x', number)"
_NAME = "'robot' || number"
_NEW = {"id": "lower(hex(randomblob(16)))", "digest": "randomblob(32)", "expires_at": "? + abs(random()) % 36000"}


class NoRoom(Exception):
    """The disk has no room for a large database."""


def fill(database: Path, tokens: int, *, expired: bool = False) -> None:
    """Store so many tokens, with applications, users and refresh tokens in proportion.

    The tokens are good for hours, or have ``expired`` days ago, one after the other. There have to be some of each
    kind, and nobody may use the database meanwhile. Raises NoRoom.
    """
    _has_room(database.parent, tokens)
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        # Nothing of it has to outlive a crash.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF", "cache_size = -2000000"):
            connection.execute(f"PRAGMA {pragma}")
        _copy_all(connection, tokens, _expiry(tokens) if expired else _NEW["expires_at"])
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def _has_room(folder: Path, tokens: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < 2 * tokens * _SIZE:
        raise NoRoom(f"{2 * tokens * _SIZE >> 30} GB are needed for a large database, {free >> 30} GB are free")


def _copy_all(connection: sqlite3.Connection, tokens: int, expiry: str) -> None:
    applications, users = max(1, tokens // PER_APPLICATION), max(1, tokens // _PER_USER)
    families = max(1, tokens // _PER_FAMILY)
    application, user, family = _any(_APPLICATION_ID, applications), _any(_ID, users), _any(_ID, families)
    started = {"user_id": user, "client_id": application}
    over = {**_NEW, "expires_at": expiry}
    by_family = {"family_id": family, "application_id": application, "client_id": application}
    by_key = {"user_id": user, "subject": user, "client_id": user, "key_id": user}
    for table, where, count, changes in (
        ("applications", "type = 'web'", applications, {"id": _APPLICATION_ID}),
        ("client_secrets", "1", applications, {"id": _ID, "application_id": _APPLICATION_ID}),
        ("users", "kind = 'service'", users, {"id": _ID, "user_name": _NAME, "name_key": _NAME}),
        ("service_user_keys", "1", users, {"id": _ID, "user_id": _ID}),
        ("token_families", "1", families, {"id": _ID, **started}),
        ("refresh_tokens", "rotated_at IS NULL", families, {**_NEW, **started, "family_id": _ID}),
        ("access_tokens", "family_id IS NOT NULL", families, {**over, **by_family}),
        ("access_tokens", "key_id IS NOT NULL", tokens - families, {**over, **by_key}),
    ):
        _copy(connection, table, where, count, changes)


def fill_postgresql(url: str, tokens: int) -> None:
    """Store so many tokens of a service user that have expired, copies of one that is there."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute("SELECT * FROM access_tokens WHERE key_id IS NOT NULL LIMIT 1")
        names = [column.name for column in cursor.description or ()]
        new = {"id": "gen_random_uuid()::text", "digest": "sha256(number::text::bytea)"}
        new["expires_at"] = _expiry(tokens).replace("?", "expires_at")
        chosen = ", ".join(new.get(name, name) for name in names)
        one = "SELECT * FROM access_tokens WHERE key_id IS NOT NULL LIMIT 1"
        for start in range(0, tokens, _BATCH):
            numbers = f"generate_series({start}, {min(start + _BATCH, tokens) - 1}) AS number"
            connection.execute(
                f"INSERT INTO access_tokens ({', '.join(names)}) SELECT {chosen} FROM {numbers}, ({one}) AS one"  # noqa: S608
            )
        connection.execute("VACUUM ANALYZE access_tokens")


def _expiry(tokens: int) -> str:
    """Within ten hours, some days before what is copied expires."""
    return f"? - {_LONG_AGO} + cast(number AS bigint) * 36000 / {tokens}"


def _any(id_: str, count: int) -> str:
    """The id of any of so many copies."""
    return id_.replace("number", f"abs(random()) % {count}")


def _copy(connection: sqlite3.Connection, table: str, where: str, count: int, changes: Mapping[str, str]) -> None:
    """So many copies of a row, with these expressions in place of columns; ? is what stood there."""
    cursor = connection.execute(f"SELECT * FROM {table} WHERE {where} LIMIT 1")  # noqa: S608
    names = [column[0] for column in cursor.description]
    values = [changes.get(name, "?") for name in names]
    bound = [value for value, shown in zip(cursor.fetchone(), values, strict=True) if "?" in shown]
    columns, chosen = ", ".join(names), ", ".join(values)
    statement = f"{_NUMBERS} INSERT INTO {table} ({columns}) SELECT {chosen} FROM numbers"  # noqa: S608
    for start in range(0, count, _BATCH):
        connection.execute(statement, [start, min(start + _BATCH, count), *bound])
