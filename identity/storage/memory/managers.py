"""Managers, in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from identity.domain.expirations import earliest
from identity.domain.groups import GroupManager
from identity.domain.managers import Manager
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.storage.memory.entity_store import MemoryEntityStore, list_ending, page_newest_first
from identity.storage.memory.groups import live_memberships
from identity.storage.memory.users import require_subject
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.managers import ManagerStore


class MemoryManagerStore(MemoryEntityStore[Manager], ManagerStore):
    def list_for_user(self, user_id: str) -> tuple[Manager, ...]:
        return tuple(manager for manager in self._rows if manager.user_id == user_id)

    def list_effective(self, user_id: str, now: datetime) -> tuple[Manager, ...]:
        return tuple(self._narrowed((row for row in self._with_groups(now) if row.user_id == user_id), now))

    def list_for_users_of_organization(self, organization_id: str, now: datetime) -> tuple[Manager, ...]:
        users = self._tables.users
        managers = (row for row in self._with_groups(now) if users.get(row.user_id).organization_id == organization_id)
        return tuple(self._narrowed(managers, now))

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[Manager, ...]:
        return list_ending(self._rows, after, until, limit, lambda row: organization_id in (None, row.organization_id))

    def _with_groups(self, now: datetime) -> Iterator[Manager]:
        """All roles, also those through groups."""
        yield from self._rows
        for member in live_memberships(self._tables, now):
            for row in self._tables.group_managers:
                if row.group_id == member.group_id:
                    yield row.for_member(member, self._owner_id(row))

    def _owner_id(self, manager: GroupManager) -> str:
        if manager.resource.level is not ManagerLevel.PROJECT_GRANT:
            return manager.organization_id
        grant = self._tables.project_grants.get(manager.resource.id)
        return self._tables.projects.get(grant.project_id).organization_id

    def _narrowed(self, managers: Iterable[Manager], now: datetime) -> Iterator[Manager]:
        """Those that have not ended, with the end that their project grant, if any, allows."""
        for manager in managers:
            grant = None
            if manager.resource.level is ManagerLevel.PROJECT_GRANT:
                grant = self._tables.project_grants.find(manager.resource.id)
            narrowed = manager if grant is None else replace(manager, until=earliest((manager.until, grant.until)))
            if not narrowed.has_ended(now):
                yield narrowed

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
        holders = (row for row in self._rows if row.resource == resource and role in row.roles and row.until is None)
        return tuple(row for row in holders if require_subject(self._tables, row.user_id).is_active)
