"""User grants, in memory."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from identity.domain.projects import UserGrant
from identity.domain.search import is_found
from identity.storage.memory.paging import page_newest_first
from identity.storage.memory.tables import Tables, require_free, update
from identity.storage.memory.users import is_found_user
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.user_grants import UserGrantStore


class MemoryUserGrantStore(UserGrantStore):
    """Rows by id."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, grant: UserGrant) -> None:
        self._tables.users.get(grant.user_id)
        self._tables.organizations.get(grant.organization_id)
        self._tables.projects.get(grant.project_id)
        if grant.project_grant_id is not None:
            self._tables.project_grants.get(grant.project_grant_id)
        self._require_first(grant)
        self._tables.user_grants.insert(grant.id, grant)

    def find(self, grant_id: str) -> UserGrant | None:
        return self._tables.user_grants.find(grant_id)

    def find_many(self, ids: Collection[str]) -> Mapping[str, UserGrant]:
        return self._tables.user_grants.find_many(ids)

    def update(self, grant: UserGrant) -> None:
        self._require_first(grant)
        update(self._tables.user_grants, grant)

    def remove(self, grant_id: str) -> None:
        self._tables.user_grants.delete(grant_id)

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

    def _require_first(self, grant: UserGrant) -> None:
        taken = (
            other
            for other in self._tables.user_grants
            if (other.user_id, other.project_id, other.project_grant_id)
            == (grant.user_id, grant.project_id, grant.project_grant_id)
            and other.id != grant.id
        )
        require_free(taken, "user_id")
