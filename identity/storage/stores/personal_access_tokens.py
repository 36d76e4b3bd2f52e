"""Personal access tokens."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime

from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.storage.paging import FIRST_PAGE, Page, PageRequest


class PersonalAccessTokenStore(ABC):
    """They belong to their service user and go with it; the access token that names one goes with that one."""

    @abstractmethod
    def add(self, token: PersonalAccessToken) -> None:
        """Store a new token. Raises Missing if there is no such user."""

    @abstractmethod
    def find(self, token_id: str, user_id: str) -> PersonalAccessToken | None:
        """The token with this id, if it is this user's."""

    @abstractmethod
    def touch(self, uses: Mapping[str, datetime]) -> None:
        """Move ``last_used_at`` of the tokens with these ids forward, never back; unknown ids are ignored."""

    @abstractmethod
    def remove(self, user_id: str, token_id: str) -> None:
        """Delete one token of the user with its access token. Raises Missing."""

    @abstractmethod
    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[PersonalAccessToken]:
        """The user's tokens, newest first."""

    @abstractmethod
    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[PersonalAccessToken, ...]:
        """Tokens, of one organization's users or of all, with ``after < expires_at <= until``, soonest first."""
