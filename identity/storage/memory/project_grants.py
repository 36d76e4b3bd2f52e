"""Project grants, in memory."""

from identity.domain.projects import ProjectGrant
from identity.domain.search import is_found
from identity.storage.memory.entities import MemoryEntityStore, page_newest_first
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.project_grants import ProjectGrantStore


class MemoryProjectGrantStore(MemoryEntityStore[ProjectGrant], ProjectGrantStore):
    """Rows by id."""

    table = "project_grants"

    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        grants = (grant for grant in self._tables.project_grants if grant.project_id == project_id)
        return next((grant for grant in grants if grant.organization_id == organization_id), None)

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
