"""Project grants, in memory."""

from collections.abc import Collection, Mapping

from identity.domain.projects import ProjectGrant
from identity.domain.search import is_found
from identity.storage.memory.cascades import remove_project_grant
from identity.storage.memory.paging import page_newest_first
from identity.storage.memory.tables import Tables, require_free, update
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.project_grants import ProjectGrantStore


class MemoryProjectGrantStore(ProjectGrantStore):
    """Rows by id."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, grant: ProjectGrant) -> None:
        self._tables.projects.get(grant.project_id)
        self._tables.organizations.get(grant.organization_id)
        self._require_free_pair(grant)
        self._tables.project_grants.insert(grant.id, grant)

    def find(self, grant_id: str) -> ProjectGrant | None:
        return self._tables.project_grants.find(grant_id)

    def find_many(self, ids: Collection[str]) -> Mapping[str, ProjectGrant]:
        return self._tables.project_grants.find_many(ids)

    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        grants = (grant for grant in self._tables.project_grants if grant.project_id == project_id)
        return next((grant for grant in grants if grant.organization_id == organization_id), None)

    def update(self, grant: ProjectGrant) -> None:
        self._require_free_pair(grant)
        update(self._tables.project_grants, grant)

    def remove(self, grant_id: str) -> None:
        remove_project_grant(self._tables, grant_id)

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        grants = (grant for grant in self._tables.project_grants if grant.project_id == project_id)
        holders = self._tables.organizations
        return page_newest_first(
            (one for one in grants if is_found(request.query, holders.get(one.organization_id))), request
        )

    def page_held(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        grants = (grant for grant in self._tables.project_grants if grant.organization_id == organization_id)
        projects = self._tables.projects
        return page_newest_first(
            (one for one in grants if is_found(request.query, projects.get(one.project_id))), request
        )

    def _require_free_pair(self, grant: ProjectGrant) -> None:
        taken = (
            other
            for other in self._tables.project_grants
            if (other.project_id, other.organization_id) == (grant.project_id, grant.organization_id)
            and other.id != grant.id
        )
        require_free(taken, "organization_id")
