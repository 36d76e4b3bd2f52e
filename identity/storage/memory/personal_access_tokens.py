"""Personal access tokens, in memory."""

from collections.abc import Mapping
from datetime import datetime

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.storage.errors import Missing
from identity.storage.memory.entities import MemoryStore, expiring, page_newest_first, touch
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.personal_access_tokens import PersonalAccessTokenStore


class MemoryPersonalAccessTokenStore(MemoryStore, PersonalAccessTokenStore):
    """Rows by id."""

    def add(self, token: PersonalAccessToken) -> None:
        self._tables.personal_access_tokens.insert({token.id: token})

    def find(self, token_id: str, user_id: str) -> PersonalAccessToken | None:
        token = self._tables.personal_access_tokens.find(token_id)
        return token if token is not None and token.user_id == user_id else None

    def touch(self, uses: Mapping[str, datetime]) -> None:
        touch(self._tables.personal_access_tokens, uses)

    def remove(self, user_id: str, token_id: str) -> None:
        if self.find(token_id, user_id) is None:
            raise Missing(token_id)
        self._tables.personal_access_tokens.delete(token_id)

    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[PersonalAccessToken]:
        return page_newest_first(
            (token for token in self._tables.personal_access_tokens if token.user_id == user_id), request
        )

    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[PersonalAccessToken, ...]:
        return expiring(self._tables, self._tables.personal_access_tokens, after, until, limit, organization_id)
