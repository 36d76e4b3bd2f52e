"""Authorization codes in SQL."""

from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.plugins.sql.rows import (
    Prepared,
    SqlStore,
    moment,
    moment_or_none,
    row_of,
    seconds,
    seconds_or_none,
    words,
    words_of,
)
from identity.plugins.sql.stores import organizations, tokens, users
from identity.plugins.sql.tables import authorization_codes as table
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import sessions, token_families
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.stores.authorization_codes import AuthorizationCodeStore

_COLUMNS = (
    table.c.digest,
    table.c.family_id,
    table.c.client_id,
    table.c.user_id,
    table.c.redirect_uri,
    table.c.scope,
    table.c.issued_at,
    table.c.expires_at,
    table.c.authenticated_at,
    table.c.session_id,
    table.c.nonce,
    table.c.code_challenge,
    table.c.redeemed_at,
)
_THIS = (table.c.digest == bindparam("code"), table.c.client_id == bindparam("client"))

_END = len(_COLUMNS)

_ADD = Prepared(insert(table))
_FAMILY_END = _END + len(tokens.FAMILY)
_FIND = Prepared(
    select(*_COLUMNS, *tokens.FAMILY, sessions.c.ended_at, *users.COLUMNS, *organizations.COLUMNS)
    .select_from(table)
    .join(token_families, token_families.c.id == table.c.family_id)
    .outerjoin(sessions, sessions.c.id == table.c.session_id)
    .outerjoin(users_table, users_table.c.id == table.c.user_id)
    .outerjoin(organizations_table, organizations_table.c.id == users_table.c.organization_id)
    .where(table.c.digest == bindparam("code"))
)
_REDEEM = Prepared(
    update(table)
    .where(*_THIS, table.c.redeemed_at.is_(None), table.c.expires_at > bindparam("at"))
    .values(redeemed_at=bindparam("at"))
    .returning(*_COLUMNS)
)
_FIND_OF_CLIENT = select(*_COLUMNS).where(*_THIS)
_UNUSED = (
    select(table.c.digest)
    .where(table.c.redeemed_at.is_(None), table.c.expires_at < bindparam("before"))
    .limit(bindparam("limit"))
)
_OF_ENDED_FAMILIES = (
    select(table.c.digest)
    .join(token_families, token_families.c.id == table.c.family_id)
    .where(token_families.c.ends_at < bindparam("before"))
    .limit(bindparam("limit"))
)
_PURGE_UNUSED = delete(table).where(table.c.digest.in_(_UNUSED))
_PURGE_OF_ENDED_FAMILIES = delete(table).where(table.c.digest.in_(_OF_ENDED_FAMILIES))


class SqlAuthorizationCodeStore(SqlStore, AuthorizationCodeStore):
    """One row each, known by digest alone."""

    def add(self, code: AuthorizationCode) -> None:
        """Store a new code."""
        values = {
            "digest": code.digest,
            "family_id": code.family_id,
            "client_id": code.client_id,
            "user_id": code.user_id,
            "redirect_uri": code.redirect_uri,
            "scope": words(code.scope),
            "issued_at": seconds(code.issued_at),
            "expires_at": seconds(code.expires_at),
            "authenticated_at": seconds(code.authenticated_at),
            "session_id": code.session_id,
            "nonce": code.nonce,
            "code_challenge": code.code_challenge,
            "redeemed_at": seconds_or_none(code.redeemed_at),
        }
        self._try(_ADD, values)

    def find(self, digest: bytes) -> PresentedCode | None:
        """The code with all that decides over it, in one query."""
        row = self._one(_FIND, {"code": digest})
        if row is None:
            return None
        session_ended_at, *user = row[_FAMILY_END:]
        return PresentedCode(
            _code_of(*row[:_END]),
            tokens.family_of(*row[_END:_FAMILY_END]),
            None if user[0] is None else users.subject_of(user),
            session_ended=session_ended_at is not None,
        )

    def redeem(self, digest: bytes, *, client_id: str, at: datetime) -> AuthorizationCode:
        """Consume the code by one conditional write: of racing callers exactly one gets it."""
        this = {"code": digest, "client": client_id}
        row = self._one(_REDEEM, {**this, "at": seconds(at)})
        if row is not None:
            return _code_of(*row)
        row = self._one(_FIND_OF_CLIENT, this)
        if row is None or row[-1] is None:
            raise Missing
        raise AlreadyUsed(_code_of(*row))

    def purge(self, before: datetime, limit: int) -> int:
        """Delete codes that expired before and are unused, or whose family has ended before."""
        parameters = {"before": seconds(before), "limit": limit}
        gone = self._change(_PURGE_UNUSED, parameters)
        if gone < limit:
            gone += self._change(_PURGE_OF_ENDED_FAMILIES, {**parameters, "limit": limit - gone})
        return gone


@row_of(*_COLUMNS)
def _code_of(
    digest: bytes,
    family_id: str,
    client_id: str,
    user_id: str,
    redirect_uri: str,
    scope: str,
    issued_at: int,
    expires_at: int,
    authenticated_at: int,
    session_id: str | None,
    nonce: str | None,
    code_challenge: str | None,
    redeemed_at: int | None,
) -> AuthorizationCode:
    return AuthorizationCode(
        digest=digest,
        family_id=family_id,
        client_id=client_id,
        user_id=user_id,
        redirect_uri=redirect_uri,
        scope=words_of(scope),
        issued_at=moment(issued_at),
        expires_at=moment(expires_at),
        authenticated_at=moment(authenticated_at),
        session_id=session_id,
        nonce=nonce,
        code_challenge=code_challenge,
        redeemed_at=moment_or_none(redeemed_at),
    )
