"""Browser sessions in SQL."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import bindparam, or_, select, update

from identity.domain.access_revocations import AccessScope
from identity.domain.authentication import Proof
from identity.domain.sessions import Session, SignedInAccount
from identity.plugins.sql.column_codecs import seconds_from_datetime, serialize_proofs
from identity.plugins.sql.query_batching import BatchedInQuery
from identity.plugins.sql.row_mapping import MappedTable, Row, row_slices
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import sessions as table
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import RowNotFound
from identity.storage.stores.sessions import MAX_SESSIONS_PER_USER, SessionStore

_MAPPED_TABLE = MappedTable[Session](table)
_SESSION, _SUBJECT = row_slices(_MAPPED_TABLE, users.SUBJECT_COLUMNS)
_ID_CONDITION = table.c.id == bindparam("session")
_IS_OPEN = table.c.ended_at.is_(None)
_USER_CONDITION = (table.c.user_id == bindparam("user"), _IS_OPEN)

_ADD = CompiledStatement(_MAPPED_TABLE.insert)
_FIND = CompiledStatement(_MAPPED_TABLE.select.where(table.c.id == bindparam("key")))
_SIGNED_IN_ACCOUNTS = (
    select(*_MAPPED_TABLE.columns, *users.SUBJECT_COLUMNS)
    .select_from(table)
    .join(users_table, users_table.c.id == table.c.user_id)
    .join(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(_IS_OPEN)
    .order_by(table.c.selected_at.desc(), table.c.id)
)
_LIST_FOR_BROWSER = BatchedInQuery(_SIGNED_IN_ACCOUNTS, table.c.digest)
_OPEN_SESSIONS = (
    _SIGNED_IN_ACCOUNTS.where(table.c.ends_at > bindparam("at"))
    .order_by(None)
    .order_by(table.c.id)
    .limit(bindparam("most"))
)
_OPEN_SESSIONS_IN_ORGANIZATION = _OPEN_SESSIONS.where(users_table.c.organization_id == bindparam("organization"))
_IMPERSONATIONS = _SIGNED_IN_ACCOUNTS.where(table.c.impersonator_id.is_not(None)).order_by(None).order_by(table.c.id)
_EXPIRED_IMPERSONATIONS = _IMPERSONATIONS.where(table.c.ends_at <= bindparam("at")).limit(bindparam("most"))
_LIST_FOR_USER = (
    _MAPPED_TABLE.select.where(*_USER_CONDITION, table.c.ends_at > bindparam("at"))
    .order_by(table.c.last_seen_at.desc(), table.c.id)
    .limit(MAX_SESSIONS_PER_USER)
)
_REAUTHENTICATE = update(table).where(_ID_CONDITION, _IS_OPEN)
_UPDATE_LAST_SEEN = CompiledStatement(
    update(table).where(_ID_CONDITION, table.c.last_seen_at < bindparam("at")).values(last_seen_at=bindparam("at"))
)
_UPDATE_SELECTED = CompiledStatement(
    update(table).where(_ID_CONDITION, table.c.selected_at < bindparam("at")).values(selected_at=bindparam("at"))
)
_END = update(table).values(ended_at=bindparam("at"))
_END_ONE = _END.where(_ID_CONDITION, _IS_OPEN)
_END_FOR_IMPERSONATOR = _END.where(table.c.impersonator_id == bindparam("impersonator"), _IS_OPEN)
_END_FOR_USER = _END.where(*_USER_CONDITION, table.c.id != bindparam("but"))


class SqlSessionStore(SqlStore, SessionStore):
    def add(self, session: Session) -> None:
        self._execute_in_savepoint(_ADD, _MAPPED_TABLE.to_row(session))

    def find(self, session_id: str) -> Session | None:
        return self._fetch_value(_MAPPED_TABLE.from_row, _FIND, {"key": session_id})

    def list_for_browser(self, digests: Collection[bytes]) -> tuple[SignedInAccount, ...]:
        if not digests:
            return ()
        # An account with a damaged session or user is not signed in; others at this browser are.
        return self._fetch_values(_read_signed_in_account, *_LIST_FOR_BROWSER.statement_for(digests))

    def list_for_user(self, user_id: str, now: datetime) -> tuple[Session, ...]:
        return self._fetch_values(
            _MAPPED_TABLE.from_row, _LIST_FOR_USER, {"user": user_id, "at": seconds_from_datetime(now)}
        )

    def list_open(self, organization_id: str | None, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        values = {"at": seconds_from_datetime(now), "most": limit}
        if organization_id is None:
            return self._fetch_values(_read_signed_in_account, _OPEN_SESSIONS, values)
        return self._fetch_values(
            _read_signed_in_account, _OPEN_SESSIONS_IN_ORGANIZATION, {**values, "organization": organization_id}
        )

    def list_impersonations(self, scope: AccessScope) -> tuple[SignedInAccount, ...]:
        is_user = users.scope_condition(scope)
        found = _IMPERSONATIONS.where(or_(is_user(table.c.user_id), is_user(table.c.impersonator_id)))
        return self._fetch_values(_read_signed_in_account, found)

    def list_expired_impersonations(self, now: datetime, limit: int) -> tuple[SignedInAccount, ...]:
        values = {"at": seconds_from_datetime(now), "most": limit}
        return self._fetch_values(_read_signed_in_account, _EXPIRED_IMPERSONATIONS, values)

    def reauthenticate(
        self,
        session_id: str,
        *,
        digest: bytes,
        proofs: tuple[Proof, ...],
        authenticated_at: datetime,
        seen_at: datetime,
        ends_at: datetime,
    ) -> None:
        now = seconds_from_datetime(seen_at)
        values = {
            "session": session_id,
            "digest": digest,
            "proofs": serialize_proofs(proofs),
            "authenticated_at": seconds_from_datetime(authenticated_at),
            "selected_at": now,
            "last_seen_at": now,
            "ends_at": seconds_from_datetime(ends_at),
        }
        if not self._execute_in_savepoint(_REAUTHENTICATE, values):
            raise RowNotFound

    def update_last_seen(self, session_id: str, seen_at: datetime) -> None:
        self._execute(_UPDATE_LAST_SEEN, {"session": session_id, "at": seconds_from_datetime(seen_at)})

    def update_selected(self, session_id: str, selected_at: datetime) -> None:
        self._execute(_UPDATE_SELECTED, {"session": session_id, "at": seconds_from_datetime(selected_at)})

    def end(self, session_id: str, ended_at: datetime) -> bool:
        return self._execute(_END_ONE, {"session": session_id, "at": seconds_from_datetime(ended_at)}) == 1

    def end_for_user(self, user_id: str, ended_at: datetime, *, except_id: str | None = None) -> int:
        return self._execute(
            _END_FOR_USER, {"user": user_id, "at": seconds_from_datetime(ended_at), "but": except_id or ""}
        )

    def end_for_organization(
        self, organization_id: str, ended_at: datetime, *, except_user_ids: frozenset[str] = frozenset()
    ) -> int:
        members = users.organization_users(organization_id, except_user_ids)
        end = update(table).where(_IS_OPEN).values(ended_at=seconds_from_datetime(ended_at))
        columns = (table.c.user_id, table.c.impersonator_id)
        return sum(self._execute(end.where(column.in_(members))) for column in columns)

    def end_for_impersonator(self, impersonator_id: str, ended_at: datetime) -> int:
        return self._execute(
            _END_FOR_IMPERSONATOR, {"impersonator": impersonator_id, "at": seconds_from_datetime(ended_at)}
        )


def _read_signed_in_account(row: Row) -> SignedInAccount:
    return SignedInAccount(_MAPPED_TABLE.from_row(row[_SESSION]), users.read_subject(row[_SUBJECT]))
