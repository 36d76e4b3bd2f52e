"""Much is stored: copies of what the service itself has stored, put into the tables themselves.

They have other ids and digests, random as in life, so that indexes are as deep and as little in the cache.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: For each application so many tokens are stored, and for each refresh token and each user.
PER_APPLICATION, _PER_FAMILY, _PER_USER = 100, 10, 500
#: Bytes on the disk that a token takes at most, with its indexes.
_SIZE = 900
_BATCH = 500_000
#: Seconds by which what has expired did so before what is copied.
_LONG_AGO = 10 * 86400
_NAME = "'robot' || number"

#: The numbers of the copies of one batch.
_NUMBERS = "WITH RECURSIVE numbers(number) AS (SELECT ? UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < ?)"


@dataclass(frozen=True, slots=True)
class _Words:
    """What stands in a copy, as SQL of one database: ids made of the copy's number, so that all that is referred to is
    there; an id and a digest like no other; any number below one that is named."""

    hexadecimal: Callable[[str, int], str]
    new_id: str
    new_digest: str
    below: Callable[[int], str]

    def application_id(self, number: str = "number") -> str:
        """As applications have them."""
        return self.hexadecimal(number, 32)

    def id(self, number: str = "number") -> str:
        """As all else has them."""
        return f"'00000000-0000-7000-8000-' || {self.hexadecimal(number, 12)}"


_SQLITE = _Words(
    lambda number, digits: f"printf('%0{digits}x', {number})",
    "lower(hex(randomblob(16)))",
    "randomblob(32)",
    lambda count: f"abs(random()) % {count}",
)
_POSTGRESQL = _Words(
    lambda number, digits: f"lpad(to_hex({number}), {digits}, '0')",
    "gen_random_uuid()::text",
    "decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')",
    lambda count: f"floor(random() * {count})::bigint",
)
#: A table, which of its rows is copied, how often, and the expressions in place of columns; ? is what stood there.
_Copies = tuple[str, str, int, Mapping[str, str]]


class NoRoom(Exception):
    """The disk has no room for a large database."""


def fill(database: Path, tokens: int, *, expired: bool = False) -> None:
    """Store so many tokens in an SQLite file, with applications, users and refresh tokens in proportion.

    The tokens are good for hours, or have ``expired`` days ago, one after the other. There have to be some of each
    kind, and nobody may use the database meanwhile. Raises NoRoom.
    """
    _has_room(database.parent, tokens)
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        # Nothing of it has to outlive a crash.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF", "cache_size = -2000000"):
            connection.execute(f"PRAGMA {pragma}")
        for copies in _all(_SQLITE, tokens, expired=expired):
            _copy(connection, *copies)
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def fill_postgresql(url: str, folder: Path, tokens: int, *, expired: bool = False) -> None:
    """The same in a database of PostgreSQL, which lies in this folder."""
    import psycopg

    _has_room(folder, tokens)
    with psycopg.connect(url, autocommit=True) as connection:
        # What is referred to is there: nobody has to look.
        connection.execute("SET session_replication_role = replica")
        for table, where, count, changes in _all(_POSTGRESQL, tokens, expired=expired):
            one = f"SELECT * FROM {table} WHERE {where} LIMIT 1"  # noqa: S608
            names = [column.name for column in connection.execute(one).description or ()]
            chosen = ", ".join(changes.get(name, "?").replace("?", f"one.{name}") for name in names)
            for start in range(0, count, _BATCH):
                numbers = f"generate_series({start}, {min(start + _BATCH, count) - 1}) AS number"
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(names)}) SELECT {chosen} FROM {numbers}, ({one}) AS one"  # noqa: S608
                )
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _has_room(folder: Path, tokens: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < 2 * tokens * _SIZE:
        raise NoRoom(f"{2 * tokens * _SIZE >> 30} GB are needed for a large database, {free >> 30} GB are free")


def _all(words: _Words, tokens: int, *, expired: bool) -> Iterator[_Copies]:
    applications, users = max(1, tokens // PER_APPLICATION), max(1, tokens // _PER_USER)
    families = max(1, tokens // _PER_FAMILY)
    application = words.application_id(words.below(applications))
    user, family = words.id(words.below(users)), words.id(words.below(families))
    started = {"user_id": user, "client_id": application}
    new = {"id": words.new_id, "digest": words.new_digest, "expires_at": f"? + {words.below(36000)}"}
    over = {**new, "expires_at": _expiry(tokens)} if expired else new
    by_family = {"family_id": family, "application_id": application, "client_id": application}
    by_key = {"user_id": user, "subject": user, "client_id": user, "key_id": user}
    of_application = {"id": words.id(), "application_id": words.application_id()}
    yield "applications", "type = 'web'", applications, {"id": words.application_id()}
    yield "client_secrets", "true", applications, of_application
    yield "users", "kind = 'service'", users, {"id": words.id(), "user_name": _NAME, "name_key": _NAME}
    yield "service_user_keys", "true", users, {"id": words.id(), "user_id": words.id()}
    yield "token_families", "true", families, {"id": words.id(), **started}
    yield "refresh_tokens", "rotated_at IS NULL", families, {**new, **started, "family_id": words.id()}
    yield "access_tokens", "family_id IS NOT NULL", families, {**over, **by_family}
    yield "access_tokens", "key_id IS NOT NULL", tokens - families, {**over, **by_key}


def _expiry(tokens: int) -> str:
    """Within ten hours, some days before what is copied expires."""
    return f"? - {_LONG_AGO} + cast(number AS bigint) * 36000 / {tokens}"


def _copy(connection: sqlite3.Connection, table: str, where: str, count: int, changes: Mapping[str, str]) -> None:
    cursor = connection.execute(f"SELECT * FROM {table} WHERE {where} LIMIT 1")  # noqa: S608
    names = [column[0] for column in cursor.description]
    values = [changes.get(name, "?") for name in names]
    bound = [value for value, shown in zip(cursor.fetchone(), values, strict=True) if "?" in shown]
    columns, chosen = ", ".join(names), ", ".join(values)
    statement = f"{_NUMBERS} INSERT INTO {table} ({columns}) SELECT {chosen} FROM numbers"  # noqa: S608
    for start in range(0, count, _BATCH):
        connection.execute(statement, [start, min(start + _BATCH, count), *bound])
