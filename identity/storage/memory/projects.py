"""Projects and their roles, in memory."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from identity.domain.expirations import NEVER
from identity.domain.groups import GroupGrant
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.storage.errors import StaleRow
from identity.storage.memory.entity_store import MemoryEntityStore
from identity.storage.memory.tables import MemoryTable
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, search_in_memory
from identity.storage.stores.projects import PROJECT_SORT_KEYS, ProjectStore

GrantT = TypeVar("GrantT", ProjectGrant, UserGrant, GroupGrant)


class MemoryProjectStore(MemoryEntityStore[Project], ProjectStore):
    """Projects by id, roles by project id and key."""

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Project]:
        projects = (row for row in self._rows if row.organization_id == organization_id)
        return search_in_memory(projects, request, PROJECT_SORT_KEYS)

    def count_children(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        applications = Counter(application.project_id for application in self._tables.applications)
        roles = Counter(role.project_id for role in self._tables.project_roles)
        return {id_: (applications[id_], roles[id_]) for id_ in ids if id_ in self._rows}

    def list_audience(
        self, project_ids: frozenset[str], organization_id: str, now: datetime, granted_until: datetime = NEVER
    ) -> frozenset[str]:
        granted_ids = {
            grant.project_id
            for grant in self._tables.project_grants
            if grant.is_effective(now)
            and grant.organization_id == organization_id
            and grant.created_at <= granted_until
        }
        organizations = self._tables.organizations
        active = [row for row in self._rows if row.active and organizations.get(row.organization_id).active]
        available = {row.id for row in active if row.organization_id == organization_id or row.id in granted_ids}
        return project_ids & available

    def list_by_resource_uri(self, uri: str) -> tuple[Project, ...]:
        return tuple(sorted((row for row in self._rows if uri in row.resource_uris), key=lambda row: row.id))

    def add_role(self, role: ProjectRole) -> None:
        self._tables.project_roles.insert({(role.project_id, role.key): role})

    def update_role(self, role: ProjectRole) -> None:
        stored = self._tables.project_roles.get((role.project_id, role.key))
        if stored.version != role.version - 1:
            raise StaleRow
        self._tables.project_roles.replace_unchecked((role.project_id, role.key), role)

    def delete_role(self, project_id: str, key: str) -> None:
        self._tables.project_roles.delete((project_id, key))
        _remove_role_from_grants(self._tables.project_grants, project_id, key)
        _remove_role_from_grants(self._tables.user_grants, project_id, key)
        _remove_role_from_grants(self._tables.group_grants, project_id, key)

    def list_roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        roles = (role for role in self._tables.project_roles if role.project_id == project_id)
        return tuple(sorted(roles, key=lambda role: role.key))


def _remove_role_from_grants(grants: MemoryTable[str, GrantT], project_id: str, key: str) -> None:
    for grant in grants:
        if grant.project_id == project_id and key in grant.roles:
            # A new version, so that a caller who read the grant before cannot restore the role by accident.
            grants.replace_unchecked(grant.id, replace(grant, roles=grant.roles - {key}, version=grant.version + 1))
