"""Managers, in memory."""

from identity.domain.managers import Manager
from identity.domain.permissions import ResourceKey
from identity.storage.memory.entity_store import MemoryEntityStore, page_newest_first
from identity.storage.memory.users import require_subject
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.managers import ManagerStore


class MemoryManagerStore(MemoryEntityStore[Manager], ManagerStore):
    def list_for_user(self, user_id: str) -> tuple[Manager, ...]:
        return tuple(manager for manager in self._rows if manager.user_id == user_id)

    def list_for_users_of_organization(self, organization_id: str) -> tuple[Manager, ...]:
        users = self._tables.users
        return tuple(row for row in self._rows if users.get(row.user_id).organization_id == organization_id)

    def page(
        self,
        resource: ResourceKey,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[Manager]:
        users, managers = self._tables.users, [row for row in self._rows if row.resource == resource]
        if organization_ids is not None:
            managers = [row for row in managers if users.get(row.user_id).organization_id in organization_ids]
        return page_newest_first(managers, request)

    def lock_by_role(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        # Writers are exclusive, so no further lock is needed.
        holders = (row for row in self._rows if row.resource == resource and role in row.roles)
        return tuple(row for row in holders if require_subject(self._tables, row.user_id).is_active)
