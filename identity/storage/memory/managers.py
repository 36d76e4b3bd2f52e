"""Managers, in memory."""

from identity.domain.managers import Manager
from identity.domain.permissions import ResourceKey
from identity.storage.memory.entity_store import MemoryEntityStore, page_newest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.managers import ManagerStore


class MemoryManagerStore(MemoryEntityStore[Manager], ManagerStore):
    table = "managers"

    def list_for_user(self, user_id: str) -> tuple[Manager, ...]:
        return tuple(manager for manager in self._tables.managers if manager.user_id == user_id)

    def list_for_users_of_organization(self, organization_id: str) -> tuple[Manager, ...]:
        users = self._tables.users
        return tuple(row for row in self._tables.managers if users.get(row.user_id).organization_id == organization_id)

    def page(
        self,
        resource: ResourceKey,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[Manager]:
        users = self._tables.users
        return page_newest_first(
            (
                manager
                for manager in self._tables.managers
                if manager.resource == resource
                and (organization_ids is None or users.get(manager.user_id).organization_id in organization_ids)
            ),
            request,
        )

    def lock_by_role(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        # Writers are exclusive, so no further lock is needed.
        return tuple(
            manager
            for manager in self._tables.managers
            if manager.resource == resource and role in manager.roles and self._is_active(manager.user_id)
        )

    def _is_active(self, user_id: str) -> bool:
        user = self._tables.users.get(user_id)
        return user.active and self._tables.organizations.get(user.organization_id).active
