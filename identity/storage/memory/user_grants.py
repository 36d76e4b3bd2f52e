"""User grants, in memory."""

from dataclasses import replace
from datetime import datetime

from identity.domain.expirations import earliest
from identity.domain.projects import UserGrant
from identity.domain.search import matches_query
from identity.storage.memory.entity_store import MemoryEntityStore, list_ending, page_newest_first
from identity.storage.memory.groups import live_memberships
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

    def list_effective(self, user_id: str, project_ids: frozenset[str], now: datetime) -> tuple[UserGrant, ...]:
        groups = {row.group_id: row for row in live_memberships(self._tables, now) if row.user_id == user_id}
        through_groups = [
            row.for_member(groups[row.group_id]) for row in self._tables.group_grants if row.group_id in groups
        ]
        grants = (row for row in (*self._rows, *through_groups) if row.user_id == user_id)
        live = (row for row in grants if row.project_id in project_ids and row.active and not row.has_ended(now))
        return tuple(filter(None, (self._narrowed(row, now) for row in live)))

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[UserGrant, ...]:
        return list_ending(self._rows, after, until, limit, lambda row: organization_id in (None, row.organization_id))

    def _narrowed(self, grant: UserGrant, now: datetime) -> UserGrant | None:
        """The grant with the roles and the end that its project grant, if any, still allows."""
        if grant.project_grant_id is None:
            return grant
        source = self._tables.project_grants.find(grant.project_grant_id)
        if source is None or not source.is_effective(now):
            return None
        return replace(grant, roles=grant.roles & source.roles, until=earliest((grant.until, source.until)))
