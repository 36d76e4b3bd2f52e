"""User grants, in memory."""

from dataclasses import replace

from identity.domain.projects import UserGrant
from identity.domain.search import is_found
from identity.storage.memory.entities import MemoryEntityStore, page_newest_first
from identity.storage.memory.users import is_found_user
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.user_grants import GrantedBy, UserGrantStore


class MemoryUserGrantStore(MemoryEntityStore[UserGrant], UserGrantStore):
    """Rows by id."""

    table = "user_grants"

    def page(
        self, by: GrantedBy, of: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        grants = [grant for grant in self._tables.user_grants if getattr(grant, by) == of]
        if request.query and within is not None:
            grants = [grant for grant in grants if grant.organization_id in within]
        return page_newest_first((one for one in grants if self._is_found(one, by, request.query)), request)

    def effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        grants = (
            grant
            for grant in self._tables.user_grants
            if grant.user_id == user_id and grant.project_id in project_ids and grant.active
        )
        narrowed = (self._narrowed(grant) for grant in grants)
        return tuple(grant for grant in narrowed if grant is not None)

    def _is_found(self, grant: UserGrant, by: GrantedBy, query: str) -> bool:
        """True if the query finds what stands at the other end."""
        if by == "user_id":
            return is_found(query, self._tables.projects.get(grant.project_id))
        return is_found_user(self._tables, self._tables.users.get(grant.user_id), query)

    def _narrowed(self, grant: UserGrant) -> UserGrant | None:
        """The grant with the roles that its project grant, if it has one, still allows."""
        if grant.project_grant_id is None:
            return grant
        source = self._tables.project_grants.find(grant.project_grant_id)
        if source is None or not source.active:
            return None
        return replace(grant, roles=grant.roles & source.roles)
