"""Pending authorization requests in SQL."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, update

from identity.domain.sessions import PendingAuthorization
from identity.plugins.sql.column_codecs import seconds_from_datetime, serialize_proofs, sorted_json_list
from identity.plugins.sql.dialect_statements import UpdateReturning
from identity.plugins.sql.row_mapping import MappedTable
from identity.plugins.sql.sql_store import SqlStore, versioned_update
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores.users import organization_users
from identity.plugins.sql.tables import authorization_requests as table
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow
from identity.storage.stores.authorization_requests import AuthorizationRequestStore

_MAPPED_TABLE = MappedTable[PendingAuthorization](table)
_IS_UNFINISHED = table.c.finished_at.is_(None)

_ADD = CompiledStatement(_MAPPED_TABLE.insert)
_FIND = CompiledStatement(_MAPPED_TABLE.select.where(table.c.id == bindparam("key")))
_UPDATE = versioned_update(table).where(_IS_UNFINISHED)
_RESET = (
    update(table)
    .where(_IS_UNFINISHED)
    .values(
        user_id=None,
        authenticated_at=None,
        proofs=serialize_proofs(()),
        session_id=None,
        done=sorted_json_list(frozenset()),
        version=table.c.version + 1,
    )
)
_RESET_FOR_USER = _RESET.where(table.c.user_id == bindparam("user"), table.c.id != bindparam("but"))
_FINISH = CompiledStatement(
    UpdateReturning(
        update(table)
        .where(table.c.id == bindparam("key"), table.c.version == bindparam("expected"), _IS_UNFINISHED)
        .values(finished_at=bindparam("at")),
        *_MAPPED_TABLE.columns,
    )
)


class SqlAuthorizationRequestStore(SqlStore, AuthorizationRequestStore):
    def add(self, pending: PendingAuthorization) -> None:
        self._execute_in_savepoint(_ADD, _MAPPED_TABLE.to_row(pending))

    def find(self, request_id: str) -> PendingAuthorization | None:
        return self._fetch_value(_MAPPED_TABLE.from_row, _FIND, {"key": request_id})

    def update(self, pending: PendingAuthorization) -> None:
        self._update_versioned(_UPDATE, _MAPPED_TABLE.to_row(pending))

    def reset_for_user(self, user_id: str, *, except_id: str | None = None) -> int:
        return self._execute(_RESET_FOR_USER, {"user": user_id, "but": except_id or ""})

    def reset_for_organization(self, organization_id: str, *, except_user_ids: frozenset[str] = frozenset()) -> int:
        return self._execute(_RESET.where(table.c.user_id.in_(organization_users(organization_id, except_user_ids))))

    def finish(self, request_id: str, finished_at: datetime, *, version: int) -> PendingAuthorization:
        row = self._fetch_one(
            _FINISH, {"key": request_id, "at": seconds_from_datetime(finished_at), "expected": version}
        )
        if row is not None:
            return replace(_MAPPED_TABLE.from_row(row), finished_at=None)
        stored = self.find(request_id)
        if stored is None:
            raise RowNotFound
        raise StaleRow(request_id) if stored.finished_at is None else AlreadyUsed(stored)
