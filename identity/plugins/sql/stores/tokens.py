"""Access tokens, refresh tokens and their families in SQL."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import bindparam, func, select, update

from identity.domain.applications import Client
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.records import Record
from identity.domain.tokens import (
    AccessToken,
    Connection,
    IssuedToken,
    PresentedRefreshToken,
    RefreshToken,
    TokenFamily,
    connections,
)
from identity.plugins.sql.batching import Lookup
from identity.plugins.sql.codecs import moment, seconds, words_of
from identity.plugins.sql.dialect_statements import GuardedInsert, Upsert
from identity.plugins.sql.mapping import Mapped, Row, Values, readable, remembering, row_of, slices
from identity.plugins.sql.rows import SqlStore
from identity.plugins.sql.statements import CompiledStatement
from identity.plugins.sql.stores import applications, organizations, projects, users
from identity.plugins.sql.stores.records import KEY as RECORD_KEY
from identity.plugins.sql.stores.records import ROWS as RECORDS
from identity.plugins.sql.tables import access_tokens as access
from identity.plugins.sql.tables import applications as applications_table
from identity.plugins.sql.tables import authorization_codes as codes
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import projects as projects_table
from identity.plugins.sql.tables import records, sessions
from identity.plugins.sql.tables import refresh_tokens as refresh
from identity.plugins.sql.tables import token_families as families
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.stores.tokens import TokenStore

Presented = TypeVar("Presented", PresentedCode, PresentedRefreshToken)

FAMILIES = Mapped[TokenFamily](families)
_ACCESS = Mapped[AccessToken](access)
_REFRESH = Mapped[RefreshToken](refresh)


def _with_standing(rows: Mapped[Any]) -> Lookup:
    """The row of this digest with its family, when its session ended, and its subject."""
    table = rows.table
    return Lookup(
        select(*rows.columns, *FAMILIES.columns, sessions.c.ended_at, *users.SUBJECT)
        .select_from(table)
        .join(families, families.c.id == table.c.family_id)
        .outerjoin(sessions, sessions.c.id == table.c.session_id)
        .outerjoin(users_table, users_table.c.id == table.c.user_id)
        .outerjoin(organizations_table, organizations_table.c.id == users_table.c.organization_id),
        {"token": table.c.digest},
    )


_START_FAMILY = CompiledStatement(GuardedInsert(None, families, key="token_families_id"))
_START_WITH_CODE = CompiledStatement(GuardedInsert(None, families, codes, key="token_families_id"))
_REVOKE_FAMILY = (
    update(families)
    .where(families.c.id == bindparam("family"), families.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
_REVOKE_FAMILIES_OF_USER = (
    update(families)
    .where(families.c.user_id == bindparam("user"), families.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
_REVOKE_OF_CLIENT = _REVOKE_FAMILIES_OF_USER.where(families.c.client_id == bindparam("client"))
_LAST_REFRESH = (
    select(func.max(refresh.c.issued_at))
    .where(refresh.c.family_id == families.c.id)
    .correlate(families)
    .scalar_subquery()
)
_CONNECTIONS = (
    select(*FAMILIES.columns, *applications.CLIENT, func.coalesce(_LAST_REFRESH, families.c.started_at))
    .select_from(families)
    .join(applications_table, applications_table.c.id == families.c.client_id)
    .join(projects_table, projects_table.c.id == applications_table.c.project_id)
    .join(organizations_table, organizations_table.c.id == projects_table.c.organization_id)
    .where(
        families.c.user_id == bindparam("user"),
        families.c.revoked_at.is_(None),
        families.c.ends_at > bindparam("at"),
    )
    .order_by(families.c.started_at, families.c.id)
)

# A token is looked at together with all that decides over it. The user and the project may belong to different
# organizations, so that table is joined twice.
_owner = organizations_table.alias("owner")
_ADD_ACCESS = CompiledStatement(GuardedInsert(None, access, key="access_tokens_digest"))
_ADD_ACCESS_ONCE = CompiledStatement(GuardedInsert(Upsert(records, RECORD_KEY), access, key="records_key"))
_FIND_ISSUED = Lookup(
    select(
        *_ACCESS.columns,
        families.c.revoked_at,
        families.c.userinfo_claims,
        families.c.methods,
        families.c.acr,
        families.c.authenticated_at,
        sessions.c.ended_at,
        *users.SUBJECT,
        *applications.ROWS.columns,
        *projects.ROWS.columns,
        *organizations.ROWS.columns_in(_owner),
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
_REVOKE_ACCESS = update(access).where(access.c.revoked_at.is_(None)).values(revoked_at=bindparam("at"))
_REVOKE_ONE = _REVOKE_ACCESS.where(access.c.digest == bindparam("token"))
_REVOKE_ACCESS_OF_USER = _REVOKE_ACCESS.where(
    access.c.expires_at > bindparam("at"), access.c.user_id == bindparam("user")
)

_ADD_REFRESH = CompiledStatement(_REFRESH.insert)
_FIND_REFRESH = _REFRESH.select.where(refresh.c.digest == bindparam("token"))
_FIND_PRESENTED = _with_standing(_REFRESH)
# Asked for this row's family, by its key. By EXISTS a planner that knows nothing of the tables yet reads all of them.
_LIVE_FAMILY = (
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
        _LIVE_FAMILY,
    )
    .values(rotated_at=bindparam("at"))
)
_ROTATE_ALONE = CompiledStatement(GuardedInsert(_ROTATE, refresh, key="token"))
_ROTATE_WITH_ACCESS = CompiledStatement(GuardedInsert(_ROTATE, refresh, access, key="token"))
# Whoever replaces a successor holds the predecessor's row first. Only then does the statement after it see the
# successor that the one before put in the place of its own: on PostgreSQL each statement sees what was committed when
# it began.
_HOLD = select(refresh.c.id).where(refresh.c.digest == bindparam("token")).with_for_update()
_REVOKE_SUCCESSOR = (
    update(refresh)
    .where(
        refresh.c.family_id == bindparam("family"),
        refresh.c.predecessor_id == bindparam("predecessor"),
        refresh.c.rotated_at.is_(None),
        refresh.c.revoked_at.is_(None),
        _LIVE_FAMILY,
    )
    .values(revoked_at=bindparam("at"))
)

_CODES = Mapped[AuthorizationCode](codes)
_THIS_CODE = (codes.c.digest == bindparam("code"), codes.c.client_id == bindparam("client"))
_ADD_CODE = CompiledStatement(_CODES.insert)
_FIND_CODE = _with_standing(_CODES)
_REDEEM_CODE = (
    update(codes)
    # Not IS NULL: a planner that knows nothing of the table yet would go through the index of all unused codes.
    .where(*_THIS_CODE, func.coalesce(codes.c.redeemed_at, 0) == 0, codes.c.expires_at > bindparam("at"))
    .values(redeemed_at=bindparam("at"))
)
#: By the names of the tables of what the code brings.
_REDEEM = {
    tuple(table.name for table in brought): CompiledStatement(
        GuardedInsert(_REDEEM_CODE, *brought, key="code", returning=_CODES.columns)
    )
    for brought in ((), (refresh,), (access,), (refresh, access))
}
_FIND_CODE_OF_CLIENT = _CODES.select.where(*_THIS_CODE)


class SqlTokenStore(SqlStore, TokenStore):
    """One row each. Whether a token lives is judged by joining its family, never copied into the token.

    So a member that is written while its family is being revoked is dead, whichever commits first.
    """

    def start_family(self, family: TokenFamily, code: AuthorizationCode | None = None, *, last: bool = False) -> None:
        new = {families.name: FAMILIES.values(family)}
        if code is not None:
            new[codes.name] = _CODES.values(code)
        with self._guarded():
            self._write(_START_FAMILY if code is None else _START_WITH_CODE, new, last=last)

    def revoke_family(self, family_id: str, at: datetime) -> None:
        self._change(_REVOKE_FAMILY, {"family": family_id, "at": seconds(at)})

    def add_access(self, token: AccessToken, *, used: Record | None = None, last: bool = False) -> None:
        new = {access.name: _ACCESS.values(token)}
        if used is None:
            self._write(_ADD_ACCESS, new, last=last)
        elif self._write(_ADD_ACCESS_ONCE, {records.name: RECORDS.values(used), **new}, last=last) is None:
            raise AlreadyUsed

    def find_issued(self, digest: bytes) -> IssuedToken | None:
        return self._find(_issued_of, _FIND_ISSUED, {"token": digest})

    def revoke_access(self, digest: bytes, at: datetime) -> None:
        self._change(_REVOKE_ONE, {"token": digest, "at": seconds(at)})

    def revoke_of_user(self, user_id: str, at: datetime, *, client_id: str | None = None) -> int:
        parameters = {"user": user_id, "at": seconds(at)}
        if client_id is not None:
            return self._change(_REVOKE_OF_CLIENT, {**parameters, "client": client_id})
        families_revoked = self._change(_REVOKE_FAMILIES_OF_USER, parameters)
        self._change(_REVOKE_ACCESS_OF_USER, parameters)
        return families_revoked

    def add_refresh(self, token: RefreshToken) -> None:
        self._try(_ADD_REFRESH, _REFRESH.values(token))

    def find_presented(self, digest: bytes) -> PresentedRefreshToken | None:
        return self._find(_presented_of, _FIND_PRESENTED, {"token": digest})

    def rotate(
        self,
        digest: bytes,
        successor: RefreshToken,
        at: datetime,
        *,
        access: AccessToken | None = None,
        last: bool = False,
    ) -> None:
        statement = _ROTATE_ALONE if access is None else _ROTATE_WITH_ACCESS
        rotated = self._write(statement, {"token": digest, "at": seconds(at), **_new(successor, access)}, last=last)
        if rotated is None:
            stored = self._find(_REFRESH.of, _FIND_REFRESH, {"token": digest})
            if stored is None or stored.rotated_at is None:
                raise Missing
            raise AlreadyUsed(stored)

    def replace_successor(self, predecessor: RefreshToken, successor: RefreshToken, at: datetime) -> bool:
        self._one(_HOLD, {"token": predecessor.digest})
        of_predecessor = {"family": predecessor.family_id, "predecessor": predecessor.id, "at": seconds(at)}
        if not self._change(_REVOKE_SUCCESSOR, of_predecessor):
            return False
        self._change(_ADD_REFRESH, _REFRESH.values(successor))
        return True

    def connections_of_user(self, user_id: str, at: datetime) -> tuple[Connection, ...]:
        return connections(readable(_connected_of, self._all(_CONNECTIONS, {"user": user_id, "at": seconds(at)})))

    def add_code(self, code: AuthorizationCode) -> None:
        self._try(_ADD_CODE, _CODES.values(code))

    def find_code(self, digest: bytes) -> PresentedCode | None:
        return self._find(_presented_code_of, _FIND_CODE, {"token": digest})

    def redeem_code(
        self,
        digest: bytes,
        *,
        client_id: str,
        at: datetime,
        refresh: RefreshToken | None = None,
        access: AccessToken | None = None,
        last: bool = False,
    ) -> AuthorizationCode:
        this, new = {"code": digest, "client": client_id}, _new(refresh, access)
        redeemed = self._write(_REDEEM[tuple(new)], {**this, "at": seconds(at), **new}, last=last)
        if redeemed is not None:
            return _CODES.of(redeemed)
        code = self._find(_CODES.of, _FIND_CODE_OF_CLIENT, this)
        raise Missing if code is None or code.redeemed_at is None else AlreadyUsed(code)


def _new(refresh_token: RefreshToken | None, access_token: AccessToken | None) -> Values:
    """The rows that hold what a code or a refresh token brings, by their tables."""
    new = {}
    if refresh_token is not None:
        new[refresh.name] = _REFRESH.values(refresh_token)
    if access_token is not None:
        new[access.name] = _ACCESS.values(access_token)
    return new


#: What is asked about is mostly asked about again.
_token_of = remembering(_ACCESS.of)
_claims_of = row_of(families.c.userinfo_claims)(words_of)
_proved_at = row_of(families.c.authenticated_at)(moment)
_last_use_of = row_of(refresh.c.issued_at)(moment)

_TOKEN, _STANDING, _SUBJECT, _CLIENT = slices(_ACCESS, 6, users.SUBJECT, applications.CLIENT)


def _issued_of(row: Row) -> IssuedToken:
    family_revoked_at, claims, methods, acr, proved_at, session_ended_at = row[_STANDING]
    client = row[_CLIENT]
    return IssuedToken(
        _token_of(row[_TOKEN]),
        users.subject_or_none(row[_SUBJECT]),
        applications.client_of(client) if any(client) else None,
        family_revoked=family_revoked_at is not None,
        session_ended=session_ended_at is not None,
        claims=() if claims is None else _claims_of((claims,)),
        methods=() if methods is None else _claims_of((methods,)),
        acr=acr or "",
        authenticated_at=None if proved_at is None else _proved_at((proved_at,)),
    )


_HELD, _HOLDER, _LAST_USE = slices(FAMILIES, applications.CLIENT, 1)


def _connected_of(row: Row) -> tuple[TokenFamily, Client, datetime]:
    return FAMILIES.of(row[_HELD]), applications.client_of(row[_HOLDER]), _last_use_of(row[_LAST_USE])


def _presented(made: Callable[..., Presented], rows: Mapped[Any]) -> Callable[[Row], Presented]:
    """What makes this of a row that ``_with_standing`` finds."""
    own, family, session, subject = slices(rows, FAMILIES, 1, users.SUBJECT)

    def of(row: Row) -> Presented:
        ended = row[session][0] is not None
        bearer = users.subject_or_none(row[subject])
        return made(rows.of(row[own]), FAMILIES.of(row[family]), bearer, session_ended=ended)

    return of


_presented_of = _presented(PresentedRefreshToken, _REFRESH)
_presented_code_of = _presented(PresentedCode, _CODES)
