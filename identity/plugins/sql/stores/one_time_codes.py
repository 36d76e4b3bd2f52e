"""One-time codes in SQL."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from identity.domain.one_time_codes import CodeKind, OneTimeCode
from identity.plugins.sql.rows import Prepared, SqlStore, moment, moment_or_none, row_of, seconds, seconds_or_none
from identity.plugins.sql.tables import one_time_codes as table
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.stores.one_time_codes import OneTimeCodeStore

_COLUMNS = (
    table.c.digest,
    table.c.kind,
    table.c.created_at,
    table.c.expires_at,
    table.c.user_id,
    table.c.sealed,
    table.c.used_at,
)

_ADD = insert(table)
_FIND = select(*_COLUMNS).where(table.c.digest == bindparam("code"))
_CONSUME = Prepared(
    update(table)
    .where(
        table.c.digest == bindparam("code"),
        table.c.kind == bindparam("wanted"),
        table.c.used_at.is_(None),
        table.c.expires_at > bindparam("at"),
    )
    .values(used_at=bindparam("at"))
    .returning(*_COLUMNS)
)
_DROP = delete(table).where(table.c.user_id == bindparam("user"), table.c.kind == bindparam("wanted"))
_EXPIRED = (
    select(table.c.digest)
    .where(table.c.expires_at < bindparam("before"))
    .order_by(table.c.expires_at)
    .limit(bindparam("limit"))
)
_PURGE = delete(table).where(table.c.digest.in_(_EXPIRED))


class SqlOneTimeCodeStore(SqlStore, OneTimeCodeStore):
    """One row each, known by digest alone."""

    def add(self, code: OneTimeCode) -> None:
        """Store a new code."""
        values = {
            "digest": code.digest,
            "kind": code.kind.value,
            "created_at": seconds(code.created_at),
            "expires_at": seconds(code.expires_at),
            "user_id": code.user_id,
            "sealed": code.sealed,
            "used_at": seconds_or_none(code.used_at),
        }
        self._try(_ADD, values)

    def find(self, digest: bytes) -> OneTimeCode | None:
        """The code, used and expired ones included."""
        row = self._one(_FIND, {"code": digest})
        return None if row is None else _code_of(*row)

    def consume(self, digest: bytes, kind: CodeKind, at: datetime) -> OneTimeCode:
        """Use the code by one conditional write: of racing callers exactly one gets it; returns it as it was."""
        row = self._one(_CONSUME, {"code": digest, "wanted": kind.value, "at": seconds(at)})
        if row is not None:
            return replace(_code_of(*row), used_at=None)
        stored = self.find(digest)
        if stored is None or stored.kind is not kind or stored.used_at is None:
            raise Missing
        raise AlreadyUsed(stored)

    def drop(self, user_id: str, kind: CodeKind) -> int:
        """Delete the user's codes of this kind."""
        return self._change(_DROP, {"user": user_id, "wanted": kind.value})

    def purge(self, before: datetime, limit: int) -> int:
        """Delete codes that expired before."""
        return self._change(_PURGE, {"before": seconds(before), "limit": limit})


@row_of(*_COLUMNS)
def _code_of(
    digest: bytes,
    kind: str,
    created_at: int,
    expires_at: int,
    user_id: str | None,
    sealed: bytes,
    used_at: int | None,
) -> OneTimeCode:
    return OneTimeCode(
        digest=digest,
        kind=CodeKind(kind),
        created_at=moment(created_at),
        expires_at=moment(expires_at),
        user_id=user_id,
        sealed=sealed,
        used_at=moment_or_none(used_at),
    )
