"""Personal access tokens in SQL."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import (
    moment,
    moment_or_none,
    move_forward,
    readable,
    row_of,
    seconds,
    seconds_or_none,
    words,
    words_of,
)
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import personal_access_tokens as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.personal_access_tokens import PersonalAccessTokenStore

_COLUMNS = (
    table.c.id,
    table.c.user_id,
    table.c.name,
    table.c.scope,
    table.c.created_at,
    table.c.expires_at,
    table.c.last_used_at,
)
_OF_USER = (table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))

_ADD = insert(table)
_FIND = select(*_COLUMNS).where(*_OF_USER)
_TOUCH = move_forward(table.c.last_used_at)
_REMOVE = delete(table).where(*_OF_USER)
_PAGE = select(*_COLUMNS).where(table.c.user_id == bindparam("user"))


class SqlPersonalAccessTokenStore(PagedStore, PersonalAccessTokenStore):
    """One row each; the access token that names it goes by foreign keys."""

    def add(self, token: PersonalAccessToken) -> None:
        """Store a new token."""
        values = {
            "id": token.id,
            "user_id": token.user_id,
            "name": token.name,
            "scope": words(token.scope),
            "created_at": seconds(token.created_at),
            "expires_at": seconds(token.expires_at),
            "last_used_at": seconds_or_none(token.last_used_at),
        }
        self._try(_ADD, values)

    def find(self, token_id: str, user_id: str) -> PersonalAccessToken | None:
        """The token with this id, if it is this user's."""
        row = self._one(_FIND, {"key": token_id, "user": user_id})
        return None if row is None else _token_of(*row)

    def touch(self, uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of the tokens with these ids forward."""
        self._move_forward(_TOUCH, uses)

    def remove(self, user_id: str, token_id: str) -> None:
        """Delete one token of the user with its access token."""
        self._touch_one(_REMOVE, {"key": token_id, "user": user_id})

    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[PersonalAccessToken]:
        """The user's tokens, newest first."""
        return self._page_newest_first(_PAGE.params(user=user_id), table, request, _token_of)

    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[PersonalAccessToken, ...]:
        """Tokens with ``after < expires_at <= until``, soonest first."""
        statement = users.expiring(table, _COLUMNS, after, until, limit, organization_id)
        return tuple(readable(_token_of, self._all(statement)))


@row_of(*_COLUMNS)
def _token_of(
    id_: str, user_id: str, name: str, scope: str, created_at: int, expires_at: int, last_used_at: int | None
) -> PersonalAccessToken:
    return PersonalAccessToken(
        id=id_,
        user_id=user_id,
        name=name,
        scope=words_of(scope),
        created_at=moment(created_at),
        expires_at=moment(expires_at),
        last_used_at=moment_or_none(last_used_at),
    )
