"""Groups, their members and their roles, in memory."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.names import name_key
from identity.domain.search import matches_query
from identity.storage.memory.entity_store import MemoryEntityStore, list_ending, page_newest_first, sort_oldest_first
from identity.storage.memory.tables import MemoryTables
from identity.storage.memory.users import user_matches_query
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, search_in_memory
from identity.storage.stores.groups import (
    GROUP_SORT_KEYS,
    GroupGrantStore,
    GroupManagerStore,
    GroupMappingStore,
    GroupMemberStore,
    GroupStore,
)


def live_memberships(tables: MemoryTables, now: datetime) -> Iterator[GroupMember]:
    """Memberships of active groups that have not ended."""
    return (row for row in tables.group_members if tables.groups.get(row.group_id).active and not row.has_ended(now))


class MemoryGroupStore(MemoryEntityStore[Group], GroupStore):
    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Group]:
        groups = (row for row in self._rows if row.organization_id == organization_id)
        return search_in_memory(groups, request, GROUP_SORT_KEYS)

    def count_members(self, ids: Collection[str]) -> Mapping[str, int]:
        return Counter(member.group_id for member in self._tables.group_members if member.group_id in ids)

    def list_of_user(self, user_id: str) -> tuple[tuple[Group, GroupMember], ...]:
        members = (row for row in self._tables.group_members if row.user_id == user_id)
        found = ((self._rows.get(member.group_id), member) for member in members)
        return tuple(sorted(found, key=lambda item: (name_key(item[0].name), item[0].id)))


class MemoryGroupMemberStore(MemoryEntityStore[GroupMember], GroupMemberStore):
    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupMember]:
        tables = self._tables
        members = (row for row in self._rows if row.group_id == group_id)
        return page_newest_first(
            (row for row in members if user_matches_query(tables, tables.users.get(row.user_id), request.query)),
            request,
        )

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupMember, ...]:
        return list_ending(self._rows, after, until, limit, lambda row: organization_id in (None, row.organization_id))


class MemoryGroupGrantStore(MemoryEntityStore[GroupGrant], GroupGrantStore):
    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupGrant]:
        projects = self._tables.projects
        grants = (row for row in self._rows if row.group_id == group_id)
        return page_newest_first(
            (row for row in grants if matches_query(request.query, projects.get(row.project_id))), request
        )

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupGrant, ...]:
        return list_ending(self._rows, after, until, limit, lambda row: organization_id in (None, row.organization_id))


class MemoryGroupManagerStore(MemoryEntityStore[GroupManager], GroupManagerStore):
    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupManager]:
        return page_newest_first((row for row in self._rows if row.group_id == group_id), request)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupManager, ...]:
        return list_ending(self._rows, after, until, limit, lambda row: organization_id in (None, row.organization_id))


class MemoryGroupMappingStore(MemoryEntityStore[GroupMapping], GroupMappingStore):
    def list_of_provider(self, provider_id: str) -> tuple[GroupMapping, ...]:
        return sort_oldest_first(row for row in self._rows if row.provider_id == provider_id)

    def list_of_directory(self, organization_id: str, name: str) -> tuple[GroupMapping, ...]:
        rows = (row for row in self._rows if row.organization_id == organization_id)
        return sort_oldest_first(row for row in rows if row.directory == name)

    def list_of_group(self, group_id: str) -> tuple[GroupMapping, ...]:
        return sort_oldest_first(row for row in self._rows if row.group_id == group_id)

    def count_members(self, ids: Collection[str]) -> Mapping[str, int]:
        return Counter(
            member.mapping_id
            for member in self._tables.group_members
            if member.mapping_id is not None and member.mapping_id in ids
        )
