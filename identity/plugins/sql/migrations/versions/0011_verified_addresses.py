"""People are found by the address that they verified, and it is stored who verified it."""

import json
import re
import unicodedata
from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase

import sqlalchemy as sa
from alembic import op

from identity.plugins.sql.migrations.indexes import add_index

revision = "0011"
down_revision = "0010"
oldest = "0006"

_INDEX, _INDEXED = "ix_users_verified_email_key", ["verified_email_key", "created_at", "id"]
_STATEMENTS = {
    "postgresql": (
        'ALTER TABLE users ADD COLUMN IF NOT EXISTS email_verified_by TEXT COLLATE "C"',
        'ALTER TABLE users ADD COLUMN IF NOT EXISTS verified_email_key TEXT COLLATE "C"',
    ),
    "sqlite": (
        "ALTER TABLE users ADD COLUMN email_verified_by TEXT",
        "ALTER TABLE users ADD COLUMN verified_email_key TEXT",
    ),
    "mariadb": (
        "ALTER TABLE users ADD COLUMN IF NOT EXISTS email_verified_by LONGTEXT",
        "ALTER TABLE users ADD COLUMN IF NOT EXISTS verified_email_key VARBINARY(800)",
    ),
}
#: How many people are looked at at once.
_AT_ONCE = 500
_READ = sa.text(
    "SELECT id, version, profile FROM users WHERE kind = 'human' AND id > :after ORDER BY id LIMIT :at_once"
)
_NOTED = "-- Each person whose address is verified gets its key, 500 at once:\n"
_CHANGED = "UPDATE users SET email_verified_by = 'earlier', verified_email_key = :key WHERE id = :id;"


def upgrade() -> None:
    """Programs before change the profile alone; what they verify is found once the person is changed again."""
    context = op.get_context()
    for statement in _STATEMENTS[context.dialect.name]:
        op.execute(statement)
    if context.as_sql:
        context.impl.static_output(f"{_NOTED}{_CHANGED}")
    elif context.opts["transaction_per_migration"]:
        # What was done stays done, and nobody waits for rows that were.
        with context.autocommit_block():
            _fill()
    else:
        _fill()
    if context.dialect.name == "mariadb":
        op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON users ({', '.join(_INDEXED)})")
    else:
        add_index(_INDEX, "users", _INDEXED, where="verified_email_key IS NOT NULL")


def _fill() -> None:
    connection, after = op.get_bind(), ""
    while rows := connection.execute(_READ, {"after": after, "at_once": _AT_ONCE}).all():
        after = rows[-1].id
        keys = dict(_keys((row.id, row.version, row.profile) for row in rows))
        if keys:
            connection.execute(*_change(keys))


def _change(keys: dict[tuple[str, int], str | None]) -> tuple[sa.TextClause, dict[str, object]]:
    """One statement for many rows. Those that were changed since they were read are left alone."""
    values: dict[str, object] = {}
    when, same = [], []
    for number, ((id_, version), key) in enumerate(keys.items()):
        values |= {f"id{number}": id_, f"version{number}": version, f"key{number}": key}
        when.append(f"WHEN :id{number} THEN :key{number}")
        same.append(f"(id = :id{number} AND version = :version{number})")
    key = f"CASE id {' '.join(when)} END"
    by = "coalesce(email_verified_by, 'earlier')"
    changed = f"UPDATE users SET email_verified_by = {by}, verified_email_key = {key} WHERE {' OR '.join(same)}"  # noqa: S608 - words of our own
    return sa.text(changed), values


def _keys(rows: Iterator[tuple[str, int, str | None]]) -> Iterator[tuple[tuple[str, int], str | None]]:
    for id_, version, profile in rows:
        try:
            known = json.loads(profile or "{}")
            verified, email = known.get("email_verified"), known.get("email")
        except (ValueError, AttributeError, RecursionError):
            # A damaged row is left as it is.
            continue
        if verified is True and isinstance(email, str):
            yield (id_, version), _email_key(email)


# As `identity.domain.email_addresses` had it when this was written.
_LOCAL_PART = re.compile(r"[^\s@<>()\[\],;:\\\"\x00-\x20\x7f]{1,64}\Z")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_FOLDED = str.maketrans(ascii_uppercase, ascii_lowercase)


def _email_key(address: str) -> str | None:
    local_part, at, domain = address.strip(" \t\r\n").rpartition("@")
    if not at or len(address) > 254 or not _LOCAL_PART.match(local_part):
        return None
    if any("\ud800" <= one <= "\udfff" for one in local_part):
        return None
    labels = [_a_label(label) for label in domain.split(".")]
    known = [label for label in labels if label is not None]
    name = ".".join(known)
    if len(known) < len(labels) or len(known) < 2 or len(name) > 253:
        return None
    return f"{local_part.translate(_FOLDED)}@{name}"


def _a_label(label: str) -> str | None:
    if label.isascii():
        name = label.translate(_FOLDED)
    else:
        lowered = "".join(map(_lowered, label))
        if not unicodedata.is_normalized("NFC", label) or not unicodedata.is_normalized("NFKC", lowered):
            return None
        if lowered.isascii() or not all(one == "-" or _is_of_word(one) for one in lowered):
            return None
        name = f"xn--{lowered.encode('punycode').decode()}"
    return name if _LABEL.match(name) else None


def _lowered(character: str) -> str:
    lowered = character.lower()
    sure = character.isascii() or (len(lowered) == 1 and not lowered.isascii() and lowered == character.casefold())
    return lowered if sure else character


def _is_of_word(character: str) -> bool:
    return unicodedata.category(character) in ("Ll", "Lo", "Lm", "Mn", "Mc", "Nd")
