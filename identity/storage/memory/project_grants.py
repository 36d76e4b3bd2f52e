"""Project grants, in memory."""

from identity.domain.projects import ProjectGrant
from identity.domain.search import matches_query
from identity.storage.memory.entity_store import MemoryEntityStore, page_newest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.project_grants import ProjectGrantFilterField, ProjectGrantStore


class MemoryProjectGrantStore(MemoryEntityStore[ProjectGrant], ProjectGrantStore):
    table = "project_grants"

    def find_for_organization(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        grants = (grant for grant in self._tables.project_grants if grant.project_id == project_id)
        return next((grant for grant in grants if grant.organization_id == organization_id), None)

    def page(
        self, filter_field: ProjectGrantFilterField, filter_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[ProjectGrant]:
        grants = (grant for grant in self._tables.project_grants if getattr(grant, filter_field) == filter_id)
        return page_newest_first(
            (grant for grant in grants if self._is_found(grant, filter_field, request.query)), request
        )

    def _is_found(self, grant: ProjectGrant, filter_field: ProjectGrantFilterField, query: str) -> bool:
        """True if the query matches the project or organization at the other end."""
        if filter_field == "project_id":
            return matches_query(query, self._tables.organizations.get(grant.organization_id))
        return matches_query(query, self._tables.projects.get(grant.project_id))
