"""Managers."""

from abc import abstractmethod

from identity.domain.managers import Manager
from identity.domain.permissions import ResourceKey
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.entity import EntityStore


class ManagerStore(EntityStore[Manager]):
    """Unique: one row per user and resource (Duplicate("user_id")). Lists are newest first."""

    @abstractmethod
    def of_user(self, user_id: str) -> tuple[Manager, ...]:
        """Everything the user holds anywhere, in one query."""

    @abstractmethod
    def of_users_of(self, organization_id: str) -> tuple[Manager, ...]:
        """Everything that users of the organization hold anywhere, in one query."""

    @abstractmethod
    def page(
        self, resource: ResourceKey, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[Manager]:
        """The managers of a resource; with ``within`` those whose users belong to these organizations."""

    @abstractmethod
    def lock_holders(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        """The managers of the resource who hold the role and whose user and organization are active, locked until the
        transaction ends: two removals of the last two owners cannot both go through."""
