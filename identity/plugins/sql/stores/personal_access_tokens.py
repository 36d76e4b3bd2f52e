"""Personal access tokens in SQL."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, delete

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.plugins.sql.mapping import Mapped
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import move_forward
from identity.plugins.sql.stores import users
from identity.plugins.sql.tables import personal_access_tokens as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.personal_access_tokens import PersonalAccessTokenStore

_ROWS = Mapped[PersonalAccessToken](table)
_OF_USER = (table.c.id == bindparam("key"), table.c.user_id == bindparam("user"))

_FIND = _ROWS.select.where(*_OF_USER)
_TOUCH = move_forward(table.c.last_used_at)
_REMOVE = delete(table).where(*_OF_USER)
_PAGE = _ROWS.select.where(table.c.user_id == bindparam("user"))


class SqlPersonalAccessTokenStore(PagedStore, PersonalAccessTokenStore):
    """One row each; the access token that names it goes by foreign keys."""

    def add(self, token: PersonalAccessToken) -> None:
        self._try(_ROWS.insert, _ROWS.values(token))

    def find(self, token_id: str, user_id: str) -> PersonalAccessToken | None:
        return self._find(_ROWS.of, _FIND, {"key": token_id, "user": user_id})

    def touch(self, uses: Mapping[str, datetime]) -> None:
        self._move_forward(_TOUCH, uses)

    def remove(self, user_id: str, token_id: str) -> None:
        self._touch_one(_REMOVE, {"key": token_id, "user": user_id})

    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[PersonalAccessToken]:
        return self._page_newest_first(_ROWS, _PAGE.params(user=user_id), request)

    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[PersonalAccessToken, ...]:
        return self._list(_ROWS.of, users.expiring(_ROWS, after, until, limit, organization_id))
