"""Access tokens, refresh tokens and their families in SQL."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, select, true, update

from identity.domain.access_revocations import AccessScope
from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.records import Record
from identity.domain.tokens import (
    AccessToken,
    ConnectedApplication,
    PresentedAccessToken,
    PresentedRefreshToken,
    RefreshToken,
    TokenFamily,
    connected_applications,
)
from identity.domain.users import TokenFormat
from identity.plugins.sql.column_codecs import datetime_from_seconds, seconds_from_datetime, split_values
from identity.plugins.sql.dialect_statements import UpdateWithInserts, Upsert
from identity.plugins.sql.query_batching import BatchedLookup
from identity.plugins.sql.row_mapping import MappedTable, Row, Values, memoized, row_reader, row_slices, skip_unreadable
from identity.plugins.sql.sql_store import SqlStore
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores import applications, organizations, projects, users
from identity.plugins.sql.stores.records import KEY_COLUMNS as RECORD_KEY
from identity.plugins.sql.stores.records import RECORD_TABLE as RECORDS
from identity.plugins.sql.tables import access_tokens as access
from identity.plugins.sql.tables import applications as applications_table
from identity.plugins.sql.tables import authorization_codes as codes
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import personal_access_tokens, records, sessions
from identity.plugins.sql.tables import projects as projects_table
from identity.plugins.sql.tables import refresh_tokens as refresh
from identity.plugins.sql.tables import token_families as families
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import AlreadyUsed, RowNotFound
from identity.storage.stores.tokens import TokenStore

PresentedT = TypeVar("PresentedT", PresentedCode, PresentedRefreshToken)

FAMILY_TABLE = MappedTable[TokenFamily](families)
_ACCESS_TOKEN_TABLE = MappedTable[AccessToken](access)
_REFRESH_TOKEN_TABLE = MappedTable[RefreshToken](refresh)


def _join_liveness(mapped_table: MappedTable[Any]) -> BatchedLookup:
    """The row of this digest with its family, the end of its session, and its subject."""
    table = mapped_table.table
    return BatchedLookup(
        select(*mapped_table.columns, *FAMILY_TABLE.columns, sessions.c.ended_at, *users.SUBJECT_COLUMNS)
        .select_from(table)
        .join(families, families.c.id == table.c.family_id)
        .outerjoin(sessions, sessions.c.id == table.c.session_id)
        .outerjoin(users_table, users_table.c.id == table.c.user_id)
        .outerjoin(organizations_table, organizations_table.c.id == users_table.c.organization_id),
        {"token": table.c.digest},
    )


_ADD_FAMILY = CompiledStatement(UpdateWithInserts(None, families, key="token_families_id"))
_ADD_FAMILY_WITH_CODE = CompiledStatement(UpdateWithInserts(None, families, codes, key="token_families_id"))
_REVOKE_FAMILIES = update(families).where(families.c.revoked_at.is_(None)).values(revoked_at=bindparam("at"))
_REVOKE_FAMILY = _REVOKE_FAMILIES.where(families.c.id == bindparam("family"))
_REVOKE_FAMILIES_FOR_USER = _REVOKE_FAMILIES.where(families.c.user_id == bindparam("user"))
_REVOKE_FOR_CLIENT = _REVOKE_FAMILIES_FOR_USER.where(families.c.client_id == bindparam("client"))
_REVOKE_FAMILIES_OF_PROVIDER = _REVOKE_FAMILIES.where(families.c.provider_id == bindparam("provider"))
_LAST_REFRESH = (
    select(func.max(refresh.c.issued_at))
    .where(refresh.c.family_id == families.c.id)
    .correlate(families)
    .scalar_subquery()
)
_CONNECTED_APPLICATIONS = (
    select(*FAMILY_TABLE.columns, *applications.CLIENT_COLUMNS, func.coalesce(_LAST_REFRESH, families.c.started_at))
    .select_from(families)
    .join(applications_table, applications_table.c.id == families.c.client_id)
    .join(projects_table, projects_table.c.id == applications_table.c.project_id)
    .join(organizations_table, organizations_table.c.id == projects_table.c.organization_id)
    .where(
        families.c.user_id == bindparam("user"), families.c.revoked_at.is_(None), families.c.ends_at > bindparam("at")
    )
    .order_by(families.c.started_at, families.c.id)
)

_LOGOUT_CLIENTS = (
    select(*applications.CLIENT_COLUMNS, sessions.c.user_id, sessions.c.id)
    .select_from(families)
    .join(sessions, sessions.c.id == families.c.session_id)
    .join(applications_table, applications_table.c.id == families.c.client_id)
    .join(projects_table, projects_table.c.id == applications_table.c.project_id)
    .join(organizations_table, organizations_table.c.id == projects_table.c.organization_id)
    .where(
        families.c.user_id.in_(bindparam("users", expanding=True)),
        sessions.c.ended_at == bindparam("at"),
        or_(applications_table.c.backchannel_logout_uri != "", applications_table.c.frontchannel_logout_uri != ""),
    )
    .order_by(families.c.started_at, families.c.id)
)

# A token is read together with everything needed to judge it. The user and the project may belong to different
# organizations, so that table is joined twice.
_owner = organizations_table.alias("owner")
_ADD_ACCESS_TOKEN = CompiledStatement(UpdateWithInserts(None, access, key="access_tokens_digest"))
_ADD_ACCESS_TOKEN_WITH_RECORD = CompiledStatement(
    UpdateWithInserts(Upsert(records, RECORD_KEY), access, key="records_key")
)
_FIND_ACCESS_TOKEN = BatchedLookup(
    select(
        *_ACCESS_TOKEN_TABLE.columns,
        families.c.revoked_at,
        families.c.userinfo_claims,
        families.c.methods,
        families.c.acr,
        families.c.authenticated_at,
        sessions.c.ended_at,
        *users.SUBJECT_COLUMNS,
        *applications.ENTITY_TABLE.columns,
        *projects.ENTITY_TABLE.columns,
        *organizations.ENTITY_TABLE.columns_in(_owner),
    )
    .select_from(access)
    .outerjoin(families, families.c.id == access.c.family_id)
    .outerjoin(sessions, sessions.c.id == access.c.session_id)
    .outerjoin(users_table, users_table.c.id == access.c.user_id)
    .outerjoin(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .outerjoin(applications_table, applications_table.c.id == access.c.application_id)
    .outerjoin(projects_table, projects_table.c.id == applications_table.c.project_id)
    .outerjoin(_owner, _owner.c.id == projects_table.c.organization_id),
    {"token": access.c.digest},
)
_REVOKE_ACCESS_TOKENS = update(access).where(access.c.revoked_at.is_(None)).values(revoked_at=bindparam("at"))
_REVOKE_ACCESS_TOKEN = _REVOKE_ACCESS_TOKENS.where(access.c.digest == bindparam("token"))
_REVOKE_ACCESS_TOKENS_FOR_USER = _REVOKE_ACCESS_TOKENS.where(
    access.c.expires_at > bindparam("at"), access.c.user_id == bindparam("user")
)
_REVOKE_ACCESS_TOKENS_FOR_CLIENT = _REVOKE_ACCESS_TOKENS_FOR_USER.where(access.c.application_id == bindparam("client"))

_ADD_REFRESH_TOKEN = CompiledStatement(_REFRESH_TOKEN_TABLE.insert)
_FIND_REFRESH_TOKEN = _REFRESH_TOKEN_TABLE.select.where(refresh.c.digest == bindparam("token"))
_FIND_REFRESH_WITH_LIVENESS = _join_liveness(_REFRESH_TOKEN_TABLE)
# The row's family is looked up by key. With EXISTS, a planner without statistics reads all families.
_IS_FAMILY_LIVE = (
    select(families.c.revoked_at.is_(None)).where(families.c.id == refresh.c.family_id).correlate(refresh)
).scalar_subquery()
_ROTATE = (
    update(refresh)
    .where(
        refresh.c.digest == bindparam("token"),
        refresh.c.rotated_at.is_(None),
        refresh.c.revoked_at.is_(None),
        refresh.c.expires_at > bindparam("at"),
        refresh.c.ends_at > bindparam("at"),
        _IS_FAMILY_LIVE,
    )
    .values(rotated_at=bindparam("at"))
)
_ROTATE_WITHOUT_ACCESS_TOKEN = CompiledStatement(UpdateWithInserts(_ROTATE, refresh, key="token"))
_ROTATE_WITH_ACCESS_TOKEN = CompiledStatement(UpdateWithInserts(_ROTATE, refresh, access, key="token"))
# Replacing a successor locks the predecessor's row first. Only then does the next statement see the successor that a
# concurrent replacement stored: on PostgreSQL each statement sees what was committed when it began.
_LOCK = select(refresh.c.id).where(refresh.c.digest == bindparam("token")).with_for_update()
_REVOKE_SUCCESSOR = (
    update(refresh)
    .where(
        refresh.c.family_id == bindparam("family"),
        refresh.c.predecessor_id == bindparam("predecessor"),
        refresh.c.rotated_at.is_(None),
        refresh.c.revoked_at.is_(None),
        _IS_FAMILY_LIVE,
    )
    .values(revoked_at=bindparam("at"))
)

_CODE_TABLE = MappedTable[AuthorizationCode](codes)
_CODE_CONDITION = (codes.c.digest == bindparam("code"), codes.c.client_id == bindparam("client"))
_ADD_CODE = CompiledStatement(_CODE_TABLE.insert)
_FIND_CODE = _join_liveness(_CODE_TABLE)
_REDEEM_CODE = (
    update(codes)
    # Not IS NULL: a planner without statistics would scan the index of all unused codes.
    .where(*_CODE_CONDITION, func.coalesce(codes.c.redeemed_at, 0) == 0, codes.c.expires_at > bindparam("at"))
    .values(redeemed_at=bindparam("at"))
)
#: By the names of the tables of the tokens obtained.
_REDEEM = {
    tuple(table.name for table in brought): CompiledStatement(
        UpdateWithInserts(_REDEEM_CODE, *brought, key="code", returning=_CODE_TABLE.columns)
    )
    for brought in ((), (refresh,), (access,), (refresh, access))
}
_FIND_CODE_FOR_CLIENT = _CODE_TABLE.select.where(*_CODE_CONDITION)


class SqlTokenStore(SqlStore, TokenStore):
    """One row each. Whether a token is live is judged by joining its family, never copied into the token. So a token
    that is stored while its family is being revoked is not live, whichever commits first."""

    def add_family(
        self, family: TokenFamily, code: AuthorizationCode | None = None, *, is_last_write: bool = False
    ) -> None:
        new = {families.name: FAMILY_TABLE.to_row(family)}
        if code is not None:
            new[codes.name] = _CODE_TABLE.to_row(code)
        with self._savepoint():
            self._execute_update_with_inserts(
                _ADD_FAMILY if code is None else _ADD_FAMILY_WITH_CODE, new, is_last_write=is_last_write
            )

    def revoke_family(self, family_id: str, revoked_at: datetime) -> None:
        self._execute(_REVOKE_FAMILY, {"family": family_id, "at": seconds_from_datetime(revoked_at)})

    def add_access_token(
        self, token: AccessToken, *, consumed_record: Record | None = None, is_last_write: bool = False
    ) -> None:
        new = {access.name: _ACCESS_TOKEN_TABLE.to_row(token)}
        if consumed_record is None:
            self._execute_update_with_inserts(_ADD_ACCESS_TOKEN, new, is_last_write=is_last_write)
        elif (
            self._execute_update_with_inserts(
                _ADD_ACCESS_TOKEN_WITH_RECORD,
                {records.name: RECORDS.to_row(consumed_record), **new},
                is_last_write=is_last_write,
            )
            is None
        ):
            raise AlreadyUsed

    def find_access_token(self, digest: bytes) -> PresentedAccessToken | None:
        return self._fetch_value(_read_access_token, _FIND_ACCESS_TOKEN, {"token": digest})

    def count_live_jwts(self, since: datetime, until: datetime, now: datetime, limit: int) -> int:
        rows = select(access.c.digest).where(
            access.c.expires_at > seconds_from_datetime(now),
            access.c.issued_at >= seconds_from_datetime(since),
            access.c.issued_at < seconds_from_datetime(until),
            access.c.format == TokenFormat.JWT.value,
            access.c.revoked_at.is_(None),
        )
        [[count]] = self._execute_select(select(func.count()).select_from(rows.limit(limit).subquery()), None)
        return int(count)

    def revoke_access_token(self, digest: bytes, revoked_at: datetime) -> None:
        self._execute(_REVOKE_ACCESS_TOKEN, {"token": digest, "at": seconds_from_datetime(revoked_at)})

    def revoke_for_user(self, user_id: str, revoked_at: datetime, *, client_id: str | None = None) -> int:
        parameters = {"user": user_id, "at": seconds_from_datetime(revoked_at)}
        if client_id is not None:
            parameters["client"] = client_id
            families_revoked = self._execute(_REVOKE_FOR_CLIENT, parameters)
            self._execute(_REVOKE_ACCESS_TOKENS_FOR_CLIENT, parameters)
            return families_revoked
        families_revoked = self._execute(_REVOKE_FAMILIES_FOR_USER, parameters)
        self._execute(_REVOKE_ACCESS_TOKENS_FOR_USER, parameters)
        return families_revoked

    def revoke_for_provider(self, provider_id: str, revoked_at: datetime, *, user_id: str | None = None) -> int:
        statement = _REVOKE_FAMILIES_OF_PROVIDER
        if user_id is not None:
            statement = statement.where(families.c.user_id == user_id)
        return self._execute(statement, {"provider": provider_id, "at": seconds_from_datetime(revoked_at)})

    def revoke_all(self, scope: AccessScope, revoked_at: datetime) -> int:
        at = seconds_from_datetime(revoked_at)
        user_condition, client_condition = _scope_conditions(scope)
        ended = 0
        for mapped, client_column, live in (
            (families, families.c.client_id, (families.c.revoked_at.is_(None),)),
            (access, access.c.application_id, (access.c.revoked_at.is_(None), access.c.expires_at > at)),
        ):
            for condition in (user_condition(mapped.c.user_id), client_condition(client_column, mapped.c.user_id)):
                if condition is not None:
                    ended += self._execute(update(mapped).where(*live, condition).values(revoked_at=at))
        of_users = user_condition(personal_access_tokens.c.user_id)
        if of_users is not None:
            self._execute(delete(personal_access_tokens).where(of_users))
        return ended

    def add_refresh_token(self, token: RefreshToken) -> None:
        self._execute_in_savepoint(_ADD_REFRESH_TOKEN, _REFRESH_TOKEN_TABLE.to_row(token))

    def find_refresh_token(self, digest: bytes) -> PresentedRefreshToken | None:
        return self._fetch_value(_read_presented_token, _FIND_REFRESH_WITH_LIVENESS, {"token": digest})

    def rotate_refresh_token(
        self,
        digest: bytes,
        successor: RefreshToken,
        rotated_at: datetime,
        *,
        access: AccessToken | None = None,
        is_last_write: bool = False,
    ) -> None:
        statement = _ROTATE_WITHOUT_ACCESS_TOKEN if access is None else _ROTATE_WITH_ACCESS_TOKEN
        rotated = self._execute_update_with_inserts(
            statement,
            {"token": digest, "at": seconds_from_datetime(rotated_at), **_new_token_rows(successor, access)},
            is_last_write=is_last_write,
        )
        if rotated is None:
            stored = self._fetch_value(_REFRESH_TOKEN_TABLE.from_row, _FIND_REFRESH_TOKEN, {"token": digest})
            if stored is None or stored.rotated_at is None:
                raise RowNotFound
            raise AlreadyUsed(stored)

    def replace_successor(self, predecessor: RefreshToken, successor: RefreshToken, replaced_at: datetime) -> bool:
        self._fetch_one(_LOCK, {"token": predecessor.digest})
        of_predecessor = {
            "family": predecessor.family_id,
            "predecessor": predecessor.id,
            "at": seconds_from_datetime(replaced_at),
        }
        if not self._execute(_REVOKE_SUCCESSOR, of_predecessor):
            return False
        self._execute(_ADD_REFRESH_TOKEN, _REFRESH_TOKEN_TABLE.to_row(successor))
        return True

    def list_connected_applications(self, user_id: str, now: datetime) -> tuple[ConnectedApplication, ...]:
        return connected_applications(
            skip_unreadable(
                _read_connected_application,
                self._fetch_all(_CONNECTED_APPLICATIONS, {"user": user_id, "at": seconds_from_datetime(now)}),
            )
        )

    def has_family(self, client_id: str, *, live_at: datetime | None = None) -> bool:
        found = select(families.c.id).where(families.c.client_id == client_id).limit(1)
        if live_at is not None:
            found = found.where(families.c.revoked_at.is_(None), families.c.ends_at > seconds_from_datetime(live_at))
        return bool(self._fetch_all(found))

    def list_logout_clients(
        self, user_ids: Collection[str], ended_at: datetime
    ) -> tuple[tuple[str, str, ApplicationClient], ...]:
        if not user_ids:
            return ()
        rows = self._fetch_all(_LOGOUT_CLIENTS, {"users": list(user_ids), "at": seconds_from_datetime(ended_at)})
        found = skip_unreadable(lambda row: (str(row[-2]), str(row[-1]), applications.read_client(row)), rows)
        return tuple(
            {(session_id, client.id): (user, session_id, client) for user, session_id, client in found}.values()
        )

    def add_authorization_code(self, code: AuthorizationCode) -> None:
        self._execute_in_savepoint(_ADD_CODE, _CODE_TABLE.to_row(code))

    def find_authorization_code(self, digest: bytes) -> PresentedCode | None:
        return self._fetch_value(_read_presented_code, _FIND_CODE, {"token": digest})

    def redeem_authorization_code(
        self,
        digest: bytes,
        *,
        client_id: str,
        redeemed_at: datetime,
        refresh: RefreshToken | None = None,
        access: AccessToken | None = None,
        is_last_write: bool = False,
    ) -> AuthorizationCode:
        this, new = {"code": digest, "client": client_id}, _new_token_rows(refresh, access)
        redeemed = self._execute_update_with_inserts(
            _REDEEM[tuple(new)], {**this, "at": seconds_from_datetime(redeemed_at), **new}, is_last_write=is_last_write
        )
        if redeemed is not None:
            return _CODE_TABLE.from_row(redeemed)
        code = self._fetch_value(_CODE_TABLE.from_row, _FIND_CODE_FOR_CLIENT, this)
        raise RowNotFound if code is None or code.redeemed_at is None else AlreadyUsed(code)


def _scope_conditions(
    scope: AccessScope,
) -> tuple[Callable[[Any], ColumnElement[bool] | None], Callable[[Any, Any], ColumnElement[bool] | None]]:
    """Conditions for a column of users, and for a column of applications beside one of users; None for no rows."""
    if scope.target is DeletionTarget.USER:
        return users.scope_condition(scope), lambda client_id, user_id: None
    if scope.target is DeletionTarget.APPLICATION:
        return lambda user_id: None, lambda client_id, user_id: client_id == scope.id
    spared = sorted(scope.except_user_ids)
    clients = (
        select(applications_table.c.id)
        .join(projects_table, projects_table.c.id == applications_table.c.project_id)
        .where(projects_table.c.organization_id == scope.id)
    )
    return (
        users.scope_condition(scope),
        lambda client_id, user_id: and_(
            client_id.in_(clients), or_(user_id.is_(None), user_id.not_in(spared)) if spared else true()
        ),
    )


def _new_token_rows(refresh_token: RefreshToken | None, access_token: AccessToken | None) -> Values:
    """The rows of the tokens obtained with a code or a refresh token, by table."""
    new = {}
    if refresh_token is not None:
        new[refresh.name] = _REFRESH_TOKEN_TABLE.to_row(refresh_token)
    if access_token is not None:
        new[access.name] = _ACCESS_TOKEN_TABLE.to_row(access_token)
    return new


#: Recently introspected tokens are likely to be introspected again.
_read_token = memoized(_ACCESS_TOKEN_TABLE.from_row)
_read_claims = row_reader(families.c.userinfo_claims)(split_values)
_read_authenticated_at = row_reader(families.c.authenticated_at)(datetime_from_seconds)
_read_last_use = row_reader(refresh.c.issued_at)(datetime_from_seconds)

_TOKEN, _LIVENESS_COLUMNS, _SUBJECT, _CLIENT = row_slices(
    _ACCESS_TOKEN_TABLE, 6, users.SUBJECT_COLUMNS, applications.CLIENT_COLUMNS
)


def _read_access_token(row: Row) -> PresentedAccessToken:
    family_revoked_at, claims, methods, acr, proved_at, session_ended_at = row[_LIVENESS_COLUMNS]
    client = row[_CLIENT]
    return PresentedAccessToken(
        _read_token(row[_TOKEN]),
        users.read_subject_or_none(row[_SUBJECT]),
        applications.read_client(client) if any(client) else None,
        family_revoked=family_revoked_at is not None,
        session_ended=session_ended_at is not None,
        claims=() if claims is None else _read_claims((claims,)),
        methods=() if methods is None else _read_claims((methods,)),
        acr=acr or "",
        authenticated_at=None if proved_at is None else _read_authenticated_at((proved_at,)),
    )


_FAMILY_COLUMNS, _CLIENT_COLUMNS, _LAST_USE = row_slices(FAMILY_TABLE, applications.CLIENT_COLUMNS, 1)


def _read_connected_application(row: Row) -> tuple[TokenFamily, ApplicationClient, datetime]:
    return (
        FAMILY_TABLE.from_row(row[_FAMILY_COLUMNS]),
        applications.read_client(row[_CLIENT_COLUMNS]),
        _read_last_use(row[_LAST_USE]),
    )


def _presented_reader(
    value_class: Callable[..., PresentedT], mapped_table: MappedTable[Any]
) -> Callable[[Row], PresentedT]:
    """A reader for rows that ``_join_liveness`` returns."""
    own_slice, family, session, subject = row_slices(mapped_table, FAMILY_TABLE, 1, users.SUBJECT_COLUMNS)

    def read_row(row: Row) -> PresentedT:
        ended = row[session][0] is not None
        bearer = users.read_subject_or_none(row[subject])
        return value_class(
            mapped_table.from_row(row[own_slice]), FAMILY_TABLE.from_row(row[family]), bearer, session_ended=ended
        )

    return read_row


_read_presented_token = _presented_reader(PresentedRefreshToken, _REFRESH_TOKEN_TABLE)
_read_presented_code = _presented_reader(PresentedCode, _CODE_TABLE)
