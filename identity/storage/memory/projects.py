"""Projects and their roles, in memory."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from identity.domain.expirations import NEVER
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.search import is_found
from identity.storage.errors import Stale
from identity.storage.memory.entities import MemoryEntityStore
from identity.storage.memory.tables import Table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest, page_sorted
from identity.storage.stores.projects import ORDERS, ProjectStore

Grant = TypeVar("Grant", ProjectGrant, UserGrant)


class MemoryProjectStore(MemoryEntityStore[Project], ProjectStore):
    """Projects by id, roles by project id and key."""

    table = "projects"

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[Project]:
        rows = (
            each
            for each in self._tables.projects
            if each.organization_id == organization_id and is_found(request.query, each)
        )
        return page_sorted(rows, request, ORDERS)

    def counts(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        applications = Counter(application.project_id for application in self._tables.applications)
        roles = Counter(role.project_id for role in self._tables.project_roles)
        return {id_: (applications[id_], roles[id_]) for id_ in ids if id_ in self._tables.projects}

    def audience(
        self, project_ids: frozenset[str], organization_id: str, granted_by: datetime = NEVER
    ) -> frozenset[str]:
        held = {
            grant.project_id
            for grant in self._tables.project_grants
            if grant.active and grant.organization_id == organization_id and grant.created_at <= granted_by
        }
        projects = [project for project in self._tables.projects if project.id in project_ids and project.active]
        return frozenset(
            project.id
            for project in projects
            if self._tables.organizations.get(project.organization_id).active
            and (project.organization_id == organization_id or project.id in held)
        )

    def add_role(self, role: ProjectRole) -> None:
        self._tables.project_roles.insert({(role.project_id, role.key): role})

    def update_role(self, role: ProjectRole) -> None:
        stored = self._tables.project_roles.get((role.project_id, role.key))
        if stored.version != role.version - 1:
            raise Stale
        self._tables.project_roles.put((role.project_id, role.key), role)

    def remove_role(self, project_id: str, key: str) -> None:
        self._tables.project_roles.delete((project_id, key))
        _take_out(self._tables.project_grants, project_id, key)
        _take_out(self._tables.user_grants, project_id, key)

    def roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        roles = (role for role in self._tables.project_roles if role.project_id == project_id)
        return tuple(sorted(roles, key=lambda role: role.key))


def _take_out(grants: Table[str, Grant], project_id: str, key: str) -> None:
    for grant in grants:
        if grant.project_id == project_id and key in grant.roles:
            # A new version, so that nobody who read the grant before can put the role back unawares.
            grants.put(grant.id, replace(grant, roles=grant.roles - {key}, version=grant.version + 1))
