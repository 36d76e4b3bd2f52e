"""Project grants, in memory."""

from identity.domain.projects import ProjectGrant
from identity.domain.search import is_found
from identity.storage.memory.entities import MemoryEntityStore, page_newest_first
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.project_grants import LentBy, ProjectGrantStore


class MemoryProjectGrantStore(MemoryEntityStore[ProjectGrant], ProjectGrantStore):
    """Rows by id."""

    table = "project_grants"

    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        grants = (grant for grant in self._tables.project_grants if grant.project_id == project_id)
        return next((grant for grant in grants if grant.organization_id == organization_id), None)

    def page(self, by: LentBy, of: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        grants = (grant for grant in self._tables.project_grants if getattr(grant, by) == of)
        return page_newest_first((one for one in grants if self._is_found(one, by, request.query)), request)

    def _is_found(self, grant: ProjectGrant, by: LentBy, query: str) -> bool:
        """True if the query finds what stands at the other end."""
        if by == "project_id":
            return is_found(query, self._tables.organizations.get(grant.organization_id))
        return is_found(query, self._tables.projects.get(grant.project_id))
