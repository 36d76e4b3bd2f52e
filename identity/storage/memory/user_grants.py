"""User grants, in memory."""

from collections.abc import Iterable
from dataclasses import replace

from identity.domain.projects import UserGrant
from identity.domain.search import is_found
from identity.storage.memory.entities import MemoryEntityStore, page_newest_first
from identity.storage.memory.users import is_found_user
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.user_grants import UserGrantStore


class MemoryUserGrantStore(MemoryEntityStore[UserGrant], UserGrantStore):
    """Rows by id."""

    table = "user_grants"

    def page_of_user(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[UserGrant]:
        grants = (grant for grant in self._tables.user_grants if grant.user_id == user_id)
        projects = self._tables.projects
        return page_newest_first(
            (grant for grant in grants if is_found(request.query, projects.get(grant.project_id))), request
        )

    def page_of_project(
        self, project_id: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        grants = (grant for grant in self._tables.user_grants if grant.project_id == project_id)
        return self._page_by_user(grants, request, within)

    def page_of_project_grant(
        self, project_grant_id: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        grants = (grant for grant in self._tables.user_grants if grant.project_grant_id == project_grant_id)
        return self._page_by_user(grants, request, within)

    def effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        grants = (
            grant
            for grant in self._tables.user_grants
            if grant.user_id == user_id and grant.project_id in project_ids and grant.active
        )
        narrowed = (self._narrowed(grant) for grant in grants)
        return tuple(grant for grant in narrowed if grant is not None)

    def _page_by_user(
        self, grants: Iterable[UserGrant], request: PageRequest, within: frozenset[str] | None
    ) -> Page[UserGrant]:
        tables = self._tables
        if request.query and within is not None:
            grants = (grant for grant in grants if grant.organization_id in within)
        found = (one for one in grants if is_found_user(tables, tables.users.get(one.user_id), request.query))
        return page_newest_first(found, request)

    def _narrowed(self, grant: UserGrant) -> UserGrant | None:
        """The grant with the roles that its project grant, if it has one, still allows."""
        if grant.project_grant_id is None:
            return grant
        source = self._tables.project_grants.find(grant.project_grant_id)
        if source is None or not source.active:
            return None
        return replace(grant, roles=grant.roles & source.roles)
