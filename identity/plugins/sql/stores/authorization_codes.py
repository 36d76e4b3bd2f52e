"""Authorization codes in SQL."""

from datetime import datetime

from sqlalchemy import bindparam, delete, select, update

from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.plugins.sql.codecs import seconds
from identity.plugins.sql.mapping import Mapped, Row, slices
from identity.plugins.sql.rows import Prepared, SqlStore
from identity.plugins.sql.stores import tokens, users
from identity.plugins.sql.tables import authorization_codes as table
from identity.plugins.sql.tables import organizations as organizations_table
from identity.plugins.sql.tables import sessions, token_families
from identity.plugins.sql.tables import users as users_table
from identity.storage.errors import AlreadyUsed, Missing
from identity.storage.stores.authorization_codes import AuthorizationCodeStore

_ROWS = Mapped[AuthorizationCode](table)
_CODE, _FAMILY, _SESSION, _SUBJECT = slices(_ROWS, tokens.FAMILIES, 1, users.SUBJECT)
_THIS = (table.c.digest == bindparam("code"), table.c.client_id == bindparam("client"))

_ADD = Prepared(_ROWS.insert)
_FIND = Prepared(
    select(*_ROWS.columns, *tokens.FAMILIES.columns, sessions.c.ended_at, *users.SUBJECT)
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
    .returning(*_ROWS.columns)
)
_FIND_OF_CLIENT = _ROWS.select.where(*_THIS)
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
        self._try(_ADD, _ROWS.values(code))

    def find(self, digest: bytes) -> PresentedCode | None:
        return self._find(_presented_of, _FIND, {"code": digest})

    def redeem(self, digest: bytes, *, client_id: str, at: datetime) -> AuthorizationCode:
        this = {"code": digest, "client": client_id}
        redeemed = self._find(_ROWS.of, _REDEEM, {**this, "at": seconds(at)})
        if redeemed is not None:
            return redeemed
        code = self._find(_ROWS.of, _FIND_OF_CLIENT, this)
        raise Missing if code is None or code.redeemed_at is None else AlreadyUsed(code)

    def purge(self, before: datetime, limit: int) -> int:
        parameters = {"before": seconds(before), "limit": limit}
        gone = self._change(_PURGE_UNUSED, parameters)
        if gone < limit:
            gone += self._change(_PURGE_OF_ENDED_FAMILIES, {**parameters, "limit": limit - gone})
        return gone


def _presented_of(row: Row) -> PresentedCode:
    return PresentedCode(
        _ROWS.of(row[_CODE]),
        tokens.FAMILIES.of(row[_FAMILY]),
        users.subject_or_none(row[_SUBJECT]),
        session_ended=row[_SESSION][0] is not None,
    )
