"""Project grants, in memory."""

from datetime import datetime

from identity.domain.projects import ProjectGrant
from identity.domain.search import matches_query
from identity.storage.memory.entity_store import MemoryEntityStore, list_ending, page_newest_first
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.project_grants import ProjectGrantFilterField, ProjectGrantStore


class MemoryProjectGrantStore(MemoryEntityStore[ProjectGrant], ProjectGrantStore):
    def find_for_organization(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        grants = (row for row in self._rows if row.project_id == project_id)
        return next((row for row in grants if row.organization_id == organization_id), None)

    def page(
        self, filter_field: ProjectGrantFilterField, filter_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[ProjectGrant]:
        def is_found(grant: ProjectGrant) -> bool:
            """True if the query matches the project or organization at the other end."""
            if filter_field == "project_id":
                return matches_query(request.query, self._tables.organizations.get(grant.organization_id))
            return matches_query(request.query, self._tables.projects.get(grant.project_id))

        grants = (row for row in self._rows if getattr(row, filter_field) == filter_id)
        return page_newest_first(filter(is_found, grants), request)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ProjectGrant, ...]:
        def is_included(grant: ProjectGrant) -> bool:
            owner_id = self._tables.projects.get(grant.project_id).organization_id
            return organization_id in (None, grant.organization_id, owner_id)

        return list_ending(self._rows, after, until, limit, is_included)
