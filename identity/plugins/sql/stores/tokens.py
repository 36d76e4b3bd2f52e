"""Access tokens, refresh tokens and their families in SQL."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from identity.domain.applications import Client
from identity.domain.tokens import (
    AccessToken,
    Connection,
    IssuedToken,
    PresentedRefreshToken,
    RefreshToken,
    TokenFamily,
    connections,
)
from identity.domain.users import TokenFormat
from identity.plugins.sql.rows import (
    Prepared,
    Record,
    SqlStore,
    Values,
    find_by_id,
    moment,
    moment_or_none,
    readable,
    row_of,
    seconds,
    seconds_or_none,
    words,
    words_of,
)
from identity.plugins.sql.stores import applications, organizations, projects, users
from identity.plugins.sql.tables import access_tokens as access
from identity.plugins.sql.tables import applications as applications_table
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import projects as projects_table
from identity.plugins.sql.tables import refresh_tokens as refresh
from identity.plugins.sql.tables import sessions
from identity.plugins.sql.tables import token_families as families
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.stores.tokens import TokenStore

FAMILY = (
    families.c.id,
    families.c.user_id,
    families.c.client_id,
    families.c.scope,
    families.c.started_at,
    families.c.ends_at,
    families.c.session_id,
    families.c.offline,
    families.c.methods,
    families.c.userinfo_claims,
    families.c.id_token_claims,
    families.c.revoked_at,
)
_ACCESS = (
    access.c.id,
    access.c.digest,
    access.c.format,
    access.c.subject,
    access.c.client_id,
    access.c.scope,
    access.c.audience,
    access.c.issued_at,
    access.c.expires_at,
    access.c.user_id,
    access.c.application_id,
    access.c.key_id,
    access.c.secret_id,
    access.c.personal_access_token_id,
    access.c.family_id,
    access.c.session_id,
    access.c.revoked_at,
)
_REFRESH = (
    refresh.c.id,
    refresh.c.digest,
    refresh.c.family_id,
    refresh.c.user_id,
    refresh.c.client_id,
    refresh.c.scope,
    refresh.c.issued_at,
    refresh.c.expires_at,
    refresh.c.ends_at,
    refresh.c.authenticated_at,
    refresh.c.session_id,
    refresh.c.nonce,
    refresh.c.predecessor_id,
    refresh.c.rotated_at,
    refresh.c.revoked_at,
)

_START_FAMILY = Prepared(insert(families))
_FIND_FAMILY = find_by_id(families, FAMILY)
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
    select(
        *FAMILY,
        func.coalesce(_LAST_REFRESH, families.c.started_at),
        *applications.COLUMNS,
        *projects.COLUMNS,
        *organizations.COLUMNS,
    )
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
_ACCESS_END = len(_ACCESS)
_STANDING_END = _ACCESS_END + 3
_USER_END = _STANDING_END + len(users.COLUMNS)
_SUBJECT_END = _USER_END + len(organizations.COLUMNS)
_ADD_ACCESS = Prepared(insert(access))
_FIND_ACCESS = select(*_ACCESS).where(access.c.digest == bindparam("token"))
_FIND_ISSUED = Prepared(
    select(
        *_ACCESS,
        families.c.revoked_at,
        families.c.userinfo_claims,
        sessions.c.ended_at,
        *users.COLUMNS,
        *organizations.COLUMNS,
        *applications.COLUMNS,
        *projects.COLUMNS,
        *(_owner.c[column.key] for column in organizations.COLUMNS),
    )
    .select_from(access)
    .outerjoin(families, families.c.id == access.c.family_id)
    .outerjoin(sessions, sessions.c.id == access.c.session_id)
    .outerjoin(users_table, users_table.c.id == access.c.user_id)
    .outerjoin(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .outerjoin(applications_table, applications_table.c.id == access.c.application_id)
    .outerjoin(projects_table, projects_table.c.id == applications_table.c.project_id)
    .outerjoin(_owner, _owner.c.id == projects_table.c.organization_id)
    .where(access.c.digest == bindparam("token"))
)
_REVOKE_ACCESS = update(access).where(access.c.revoked_at.is_(None)).values(revoked_at=bindparam("at"))
_REVOKE_ONE = _REVOKE_ACCESS.where(access.c.digest == bindparam("token"))
_REVOKE_LIVE = _REVOKE_ACCESS.where(access.c.expires_at > bindparam("at"))
_REVOKE_OF_USER = _REVOKE_LIVE.where(access.c.user_id == bindparam("user"))

_REFRESH_END = len(_REFRESH)
_FAMILY_END = _REFRESH_END + len(FAMILY)
_ADD_REFRESH = Prepared(insert(refresh))
_FIND_REFRESH = select(*_REFRESH).where(refresh.c.digest == bindparam("token"))
_FIND_PRESENTED = Prepared(
    select(*_REFRESH, *FAMILY, sessions.c.ended_at, *users.COLUMNS, *organizations.COLUMNS)
    .select_from(refresh)
    .join(families, families.c.id == refresh.c.family_id)
    .outerjoin(sessions, sessions.c.id == refresh.c.session_id)
    .outerjoin(users_table, users_table.c.id == refresh.c.user_id)
    .outerjoin(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(refresh.c.digest == bindparam("token"))
)
_LIVE_FAMILY = (
    select(families.c.id).where(families.c.id == refresh.c.family_id, families.c.revoked_at.is_(None)).exists()
)
_ROTATE = Prepared(
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
    .returning(*_REFRESH)
)
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
_REVOKE_REFRESH = (
    update(refresh)
    .where(refresh.c.digest == bindparam("token"), refresh.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)

_EXPIRED_ACCESS = (
    select(access.c.digest)
    .where(access.c.expires_at < bindparam("before"))
    .order_by(access.c.expires_at)
    .limit(bindparam("limit"))
)
_PURGE_ACCESS = delete(access).where(access.c.digest.in_(_EXPIRED_ACCESS))
_ENDED_FAMILIES = (
    select(families.c.id)
    .where(families.c.ends_at < bindparam("before"))
    .order_by(families.c.ends_at)
    .limit(bindparam("limit"))
)
_PURGE_FAMILIES = delete(families).where(families.c.id.in_(_ENDED_FAMILIES))


class SqlTokenStore(SqlStore, TokenStore):
    """One row each. Whether a token lives is judged by joining its family, never copied into the token.

    So a member that is written while its family is being revoked is dead, whichever commits first.
    """

    def start_family(self, family: TokenFamily) -> None:
        """Store a new family."""
        values = {
            "id": family.id,
            "user_id": family.user_id,
            "client_id": family.client_id,
            "scope": words(family.scope),
            "started_at": seconds(family.started_at),
            "ends_at": seconds(family.ends_at),
            "session_id": family.session_id,
            "offline": family.offline,
            "methods": words(family.methods),
            "userinfo_claims": words(family.userinfo_claims),
            "id_token_claims": words(family.id_token_claims),
            "revoked_at": seconds_or_none(family.revoked_at),
        }
        self._try(_START_FAMILY, values)

    def find_family(self, family_id: str) -> TokenFamily | None:
        """The family with this id."""
        row = self._one(_FIND_FAMILY, {"key": family_id})
        return None if row is None else family_of(*row)

    def revoke_family(self, family_id: str, at: datetime) -> None:
        """Revoke the family and so all its tokens."""
        self._change(_REVOKE_FAMILY, {"family": family_id, "at": seconds(at)})

    def add_access(self, token: AccessToken) -> None:
        """Record an access token."""
        values = {
            "digest": token.digest,
            "id": token.id,
            "format": token.format.value,
            "subject": token.subject,
            "client_id": token.client_id,
            "scope": words(token.scope),
            "audience": words(token.audience),
            "issued_at": seconds(token.issued_at),
            "expires_at": seconds(token.expires_at),
            "user_id": token.user_id,
            "application_id": token.application_id,
            "key_id": token.key_id,
            "secret_id": token.secret_id,
            "personal_access_token_id": token.personal_access_token_id,
            "family_id": token.family_id,
            "session_id": token.session_id,
            "revoked_at": seconds_or_none(token.revoked_at),
        }
        self._change(_ADD_ACCESS, values)

    def find_access(self, digest: bytes) -> AccessToken | None:
        """The access token alone."""
        row = self._one(_FIND_ACCESS, {"token": digest})
        return None if row is None else _access_of(*row)

    def find_issued(self, digest: bytes) -> IssuedToken | None:
        """The access token with subject, organization, client, family and session, in one query."""
        row = self._one(_FIND_ISSUED, {"token": digest})
        if row is None:
            return None
        family_revoked_at, claims, session_ended_at = row[_ACCESS_END:_STANDING_END]
        user, client = row[_STANDING_END:_SUBJECT_END], row[_SUBJECT_END:]
        return IssuedToken(
            _access_of(*row[:_ACCESS_END]),
            None if user[0] is None else users.subject_of(user),
            None if client[0] is None else applications.client_of(client, ()),
            family_revoked=family_revoked_at is not None,
            session_ended=session_ended_at is not None,
            claims=() if claims is None else _claims_of(claims),
        )

    def revoke_access(self, digest: bytes, at: datetime) -> None:
        """Revoke one access token."""
        self._change(_REVOKE_ONE, {"token": digest, "at": seconds(at)})

    def revoke_of_user(self, user_id: str, at: datetime) -> int:
        """Revoke all live access tokens and families of a user."""
        parameters = {"user": user_id, "at": seconds(at)}
        self._change(_REVOKE_FAMILIES_OF_USER, parameters)
        return self._change(_REVOKE_OF_USER, parameters)

    def add_refresh(self, token: RefreshToken) -> None:
        """Record the first refresh token of a family."""
        self._try(_ADD_REFRESH, _refresh_values(token))

    def find_refresh(self, digest: bytes) -> RefreshToken | None:
        """The refresh token, live or not."""
        row = self._one(_FIND_REFRESH, {"token": digest})
        return None if row is None else _refresh_of(*row)

    def find_presented(self, digest: bytes) -> PresentedRefreshToken | None:
        """The refresh token with family, user, organization and session, in one query."""
        row = self._one(_FIND_PRESENTED, {"token": digest})
        if row is None:
            return None
        session_ended_at, *user = row[_FAMILY_END:]
        return PresentedRefreshToken(
            _refresh_of(*row[:_REFRESH_END]),
            family_of(*row[_REFRESH_END:_FAMILY_END]),
            None if user[0] is None else users.subject_of(user),
            session_ended=session_ended_at is not None,
        )

    def rotate(self, digest: bytes, successor: RefreshToken, at: datetime) -> RefreshToken:
        """Exchange a live refresh token for its successor by one conditional write; returns the old one as it was."""
        row: Record | None = self._one(_ROTATE, {"token": digest, "at": seconds(at)})
        if row is None:
            stored = self.find_refresh(digest)
            if stored is None or stored.rotated_at is None:
                raise Missing
            raise AlreadyUsed(stored)
        self._try(_ADD_REFRESH, _refresh_values(successor))
        return replace(_refresh_of(*row), rotated_at=None)

    def replace_successor(self, predecessor: RefreshToken, successor: RefreshToken, at: datetime) -> bool:
        """Put ``successor`` in the place of the one that ``predecessor`` was rotated to."""
        self._one(_HOLD, {"token": predecessor.digest})
        of_predecessor = {"family": predecessor.family_id, "predecessor": predecessor.id, "at": seconds(at)}
        if not self._change(_REVOKE_SUCCESSOR, of_predecessor):
            return False
        self._try(_ADD_REFRESH, _refresh_values(successor))
        return True

    def revoke_refresh(self, digest: bytes, at: datetime) -> None:
        """Revoke one refresh token."""
        self._change(_REVOKE_REFRESH, {"token": digest, "at": seconds(at)})

    def connections_of_user(self, user_id: str, at: datetime) -> tuple[Connection, ...]:
        """What applications hold of the user, last used first, in one query."""
        return connections(readable(_connected_of, self._all(_CONNECTIONS, {"user": user_id, "at": seconds(at)})))

    def revoke_of_client(self, user_id: str, client_id: str, at: datetime) -> int:
        """Revoke all families that the client has of the user."""
        return self._change(_REVOKE_OF_CLIENT, {"user": user_id, "client": client_id, "at": seconds(at)})

    def purge_access(self, before: datetime, limit: int) -> int:
        """Delete access tokens that expired before."""
        return self._change(_PURGE_ACCESS, {"before": seconds(before), "limit": limit})

    def purge_families(self, before: datetime, limit: int) -> int:
        """Delete families that ended before, with their codes and tokens."""
        return self._change(_PURGE_FAMILIES, {"before": seconds(before), "limit": limit})


@row_of(*FAMILY)
def family_of(
    id_: str,
    user_id: str,
    client_id: str,
    scope: str,
    started_at: int,
    ends_at: int,
    session_id: str | None,
    offline: bool,
    methods: str,
    userinfo_claims: str,
    id_token_claims: str,
    revoked_at: int | None,
) -> TokenFamily:
    """The family of a row of FAMILY."""
    return TokenFamily(
        id=id_,
        user_id=user_id,
        client_id=client_id,
        scope=words_of(scope),
        started_at=moment(started_at),
        ends_at=moment(ends_at),
        session_id=session_id,
        offline=offline,
        methods=words_of(methods),
        userinfo_claims=words_of(userinfo_claims),
        id_token_claims=words_of(id_token_claims),
        revoked_at=moment_or_none(revoked_at),
    )


_claims_of = row_of(families.c.userinfo_claims)(words_of)
_last_use_of = row_of(refresh.c.issued_at)(moment)


def _connected_of(*row: Any) -> tuple[TokenFamily, Client, datetime]:
    end = len(FAMILY)
    return family_of(*row[:end]), applications.client_of(row[end + 1 :], ()), _last_use_of(row[end])


@row_of(*_ACCESS)
def _access_of(
    id_: str,
    digest: bytes,
    format_: str,
    subject: str,
    client_id: str,
    scope: str,
    audience: str,
    issued_at: int,
    expires_at: int,
    user_id: str | None,
    application_id: str | None,
    key_id: str | None,
    secret_id: str | None,
    personal_access_token_id: str | None,
    family_id: str | None,
    session_id: str | None,
    revoked_at: int | None,
) -> AccessToken:
    return AccessToken(
        id=id_,
        digest=digest,
        format=TokenFormat(format_),
        subject=subject,
        client_id=client_id,
        scope=words_of(scope),
        audience=words_of(audience),
        issued_at=moment(issued_at),
        expires_at=moment(expires_at),
        user_id=user_id,
        application_id=application_id,
        key_id=key_id,
        secret_id=secret_id,
        personal_access_token_id=personal_access_token_id,
        family_id=family_id,
        session_id=session_id,
        revoked_at=moment_or_none(revoked_at),
    )


@row_of(*_REFRESH)
def _refresh_of(
    id_: str,
    digest: bytes,
    family_id: str,
    user_id: str,
    client_id: str,
    scope: str,
    issued_at: int,
    expires_at: int,
    ends_at: int,
    authenticated_at: int,
    session_id: str | None,
    nonce: str | None,
    predecessor_id: str | None,
    rotated_at: int | None,
    revoked_at: int | None,
) -> RefreshToken:
    return RefreshToken(
        id=id_,
        digest=digest,
        family_id=family_id,
        user_id=user_id,
        client_id=client_id,
        scope=words_of(scope),
        issued_at=moment(issued_at),
        expires_at=moment(expires_at),
        ends_at=moment(ends_at),
        authenticated_at=moment(authenticated_at),
        session_id=session_id,
        nonce=nonce,
        predecessor_id=predecessor_id,
        rotated_at=moment_or_none(rotated_at),
        revoked_at=moment_or_none(revoked_at),
    )


def _refresh_values(token: RefreshToken) -> Values:
    return {
        "digest": token.digest,
        "id": token.id,
        "family_id": token.family_id,
        "user_id": token.user_id,
        "client_id": token.client_id,
        "scope": words(token.scope),
        "issued_at": seconds(token.issued_at),
        "expires_at": seconds(token.expires_at),
        "ends_at": seconds(token.ends_at),
        "authenticated_at": seconds(token.authenticated_at),
        "session_id": token.session_id,
        "nonce": token.nonce,
        "predecessor_id": token.predecessor_id,
        "rotated_at": seconds_or_none(token.rotated_at),
        "revoked_at": seconds_or_none(token.revoked_at),
    }
