"""User grants, in memory."""

from dataclasses import replace

from identity.domain.projects import UserGrant
from identity.domain.search import matches_query
from identity.storage.memory.entity_store import MemoryEntityStore, page_newest_first
from identity.storage.memory.users import user_matches_query
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.user_grants import UserGrantFilterField, UserGrantStore


class MemoryUserGrantStore(MemoryEntityStore[UserGrant], UserGrantStore):
    def page(
        self,
        filter_field: UserGrantFilterField,
        filter_id: str,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[UserGrant]:
        grants = [grant for grant in self._rows if getattr(grant, filter_field) == filter_id]
        if request.query and organization_ids is not None:
            grants = [grant for grant in grants if grant.organization_id in organization_ids]

        def is_found(grant: UserGrant) -> bool:
            """True if the query matches the user or project at the other end."""
            if filter_field == "user_id":
                return matches_query(request.query, self._tables.projects.get(grant.project_id))
            return user_matches_query(self._tables, self._tables.users.get(grant.user_id), request.query)

        return page_newest_first(filter(is_found, grants), request)

    def list_effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        grants = (row for row in self._rows if row.user_id == user_id and row.project_id in project_ids)
        return tuple(filter(None, (self._narrowed(row) for row in grants if row.active)))

    def _narrowed(self, grant: UserGrant) -> UserGrant | None:
        """The grant with the roles that its project grant, if any, still allows."""
        if grant.project_grant_id is None:
            return grant
        source = self._tables.project_grants.find(grant.project_grant_id)
        if source is None or not source.active:
            return None
        return replace(grant, roles=grant.roles & source.roles)
