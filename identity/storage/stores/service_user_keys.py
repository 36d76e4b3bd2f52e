"""Public keys of service users."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import datetime

from identity.domain.service_user_keys import KeySummary, ServiceUserKey
from identity.domain.users import Subject
from identity.storage.paging import FIRST_PAGE, Page, PageRequest


class ServiceUserKeyStore(ABC):
    """Lists are newest first."""

    @abstractmethod
    def add(self, key: ServiceUserKey) -> None:
        """Store a new key. Raises Missing if there is no such user."""

    @abstractmethod
    def find(self, key_id: str, user_id: str) -> ServiceUserKey | None:
        """The key with this id, if it is this user's."""

    @abstractmethod
    def find_signer(self, key_id: str, user_id: str) -> tuple[ServiceUserKey, Subject] | None:
        """The key with its service user and organization, in one query; None unless all three exist."""

    @abstractmethod
    def touch(self, key_id: str, at: datetime) -> None:
        """Set ``last_used_at``; nothing happens if the key is gone."""

    @abstractmethod
    def remove(self, key_id: str) -> None:
        """Delete it with the access tokens that it obtained."""

    @abstractmethod
    def page(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[ServiceUserKey]:
        """The user's keys."""

    @abstractmethod
    def summaries(self, user_ids: Collection[str], at: datetime) -> Mapping[str, KeySummary]:
        """The keys of each of these users taken together, as they are at ``at``, in one query; users without a key are
        left out."""

    @abstractmethod
    def expiring(
        self, after: datetime, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ServiceUserKey, ...]:
        """Keys, of one organization's users or of all, with ``after < expires_at <= until``, soonest first."""
