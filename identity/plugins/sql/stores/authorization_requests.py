"""Authorization requests that wait for their user, in SQL."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, update

from identity.domain.sessions import PendingAuthorization
from identity.plugins.sql.codecs import proofs_text, seconds, sorted_list
from identity.plugins.sql.dialect_statements import UpdateReturning
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.rows import SqlStore, find_by_id, versioned
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.tables import authorization_requests as table
from identity.storage.errors import AlreadyUsed, Missing, Stale
from identity.storage.stores.authorization_requests import AuthorizationRequestStore

_ROWS = Mapped[PendingAuthorization](table)
_UNFINISHED = table.c.finished_at.is_(None)

_ADD = CompiledStatement(_ROWS.insert)
_FIND = CompiledStatement(find_by_id(table, _ROWS.columns))
_UPDATE = versioned(table).where(_UNFINISHED)
_BEGIN_ANEW = (
    update(table)
    .where(table.c.user_id == bindparam("user"), _UNFINISHED, table.c.id != bindparam("but"))
    .values(
        user_id=None,
        authenticated_at=None,
        proofs=proofs_text(()),
        session_id=None,
        done=sorted_list(frozenset()),
        version=table.c.version + 1,
    )
)
_FINISH = CompiledStatement(
    UpdateReturning(
        update(table)
        .where(table.c.id == bindparam("key"), table.c.version == bindparam("expected"), _UNFINISHED)
        .values(finished_at=bindparam("at")),
        *_ROWS.columns,
    )
)


class SqlAuthorizationRequestStore(SqlStore, AuthorizationRequestStore):
    """One row each."""

    def add(self, pending: PendingAuthorization) -> None:
        self._try(_ADD, _ROWS.values(pending))

    def find(self, request_id: str) -> PendingAuthorization | None:
        return self._find(_ROWS.of, _FIND, {"key": request_id})

    def update(self, pending: PendingAuthorization) -> None:
        self._replace(_UPDATE, _ROWS.values(pending))

    def begin_anew(self, user_id: str, *, but: str | None = None) -> int:
        return self._change(_BEGIN_ANEW, {"user": user_id, "but": but or ""})

    def finish(self, request_id: str, at: datetime, *, version: int) -> PendingAuthorization:
        row = self._one(_FINISH, {"key": request_id, "at": seconds(at), "expected": version})
        if row is not None:
            return replace(_ROWS.of(row), finished_at=None)
        stored = self.find(request_id)
        if stored is None:
            raise Missing
        raise Stale(request_id) if stored.finished_at is None else AlreadyUsed(stored)
