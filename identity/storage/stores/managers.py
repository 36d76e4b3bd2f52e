"""Managers."""

from abc import abstractmethod
from datetime import datetime

from identity.domain.managers import Manager
from identity.domain.permissions import ResourceKey
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.entity_store import EntityStore


class ManagerStore(EntityStore[Manager]):
    """Unique: one row per user and resource (DuplicateValue("user_id")). Lists are newest first."""

    @abstractmethod
    def list_for_user(self, user_id: str) -> tuple[Manager, ...]:
        """All roles of the user, in one query, also those that have ended."""

    @abstractmethod
    def list_effective(self, user_id: str, now: datetime) -> tuple[Manager, ...]:
        """The user's roles that have not ended, in one query. Roles at a project grant end with it; their end is
        narrowed to that of the project grant."""

    @abstractmethod
    def list_for_users_of_organization(self, organization_id: str, now: datetime) -> tuple[Manager, ...]:
        """All roles of the organization's users that have not ended, in one query."""

    @abstractmethod
    def page(
        self,
        resource: ResourceKey,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[Manager]:
        """The managers of a resource; with ``organization_ids`` those whose users belong to these organizations."""

    @abstractmethod
    def lock_by_role(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        """The managers of the resource with the role, without an end, whose user and organization are active, locked
        until the transaction ends: concurrent removals of the last two owners cannot both succeed."""

    @abstractmethod
    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[Manager, ...]:
        """The managers whose roles end at ``until`` at the latest and after ``after``, soonest first. With an
        organization, those of the organization, its projects and the project grants that it gives."""
