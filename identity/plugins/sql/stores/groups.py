"""Groups, their members and their roles in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, Table, bindparam, func, select

from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.permissions import ManagerLevel
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore, has_not_ended
from identity.plugins.sql.paging import PagedSqlStore
from identity.plugins.sql.row_mapping import Row, Values, row_slices
from identity.plugins.sql.tables import (
    group_grants,
    group_managers,
    group_mappings,
    group_members,
    group_search_terms,
    groups,
    project_grants,
    projects,
)
from identity.plugins.sql.term_index import TermIndexedStore
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.groups import (
    GroupGrantStore,
    GroupManagerStore,
    GroupMappingStore,
    GroupMemberStore,
    GroupStore,
)

GROUP_TABLE = EntityTable[Group](groups)
MEMBER_TABLE = EntityTable[GroupMember](group_members)
GRANT_TABLE = EntityTable[GroupGrant](group_grants)
MANAGER_TABLE = EntityTable[GroupManager](group_managers)
MAPPING_TABLE = EntityTable[GroupMapping](group_mappings)
_MAPPINGS = MAPPING_TABLE.select.order_by(group_mappings.c.created_at, group_mappings.c.id)
_MAPPINGS_OF_PROVIDER = _MAPPINGS.where(group_mappings.c.provider_id == bindparam("provider"))
_MAPPINGS_OF_DIRECTORY = _MAPPINGS.where(
    group_mappings.c.directory == bindparam("directory"), group_mappings.c.organization_id == bindparam("organization")
)
_MAPPINGS_OF_GROUP = _MAPPINGS.where(group_mappings.c.group_id == bindparam("group"))

_SORT_COLUMNS = {"name": groups.c.name_key, "created_at": groups.c.created_at}
_GROUP_PART, _MEMBER_PART = row_slices(GROUP_TABLE, MEMBER_TABLE)
_LIST_OF_USER = (
    select(*GROUP_TABLE.columns, *MEMBER_TABLE.columns)
    .join(group_members, group_members.c.group_id == groups.c.id)
    .where(group_members.c.user_id == bindparam("user"))
    .order_by(groups.c.name_key, groups.c.id)
)


def select_through_groups(rows: EntityTable[Any], source: Table, **further: ColumnElement[Any]) -> Select[Any]:
    """The rows of ``source``, which belong to groups, with the columns of ``rows``: once for each membership of an
    active group that has not ended. ``further`` are columns that the source lacks. The parameter ``now`` is the
    moment."""
    known = {"user_id": group_members.c.user_id, **further}
    names = (column.name for column in rows.columns)
    columns = [(known[name] if name in known else source.c[name]).label(name) for name in names]
    return (
        select(*columns)
        .select_from(group_members)
        .join(groups, groups.c.id == group_members.c.group_id)
        .join(source, source.c.group_id == groups.c.id)
        .where(groups.c.active, has_not_ended(group_members), has_not_ended(source))
    )


def _count_members(store: PagedSqlStore, column: Column[Any], ids: Collection[str]) -> Mapping[str, int]:
    """The number of members for each of these values of the column."""
    counts = select(column, func.count()).group_by(column)
    return dict(store._fetch_values_by_id(counts, column, ids, lambda row: (row[0], row[1])))


class SqlGroupStore(TermIndexedStore[Group], GroupStore):
    entity_table = GROUP_TABLE
    term_table = group_search_terms

    def _term_scopes(self, value: Group) -> Values:
        return {"organization_id": value.organization_id}

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[Group]:
        rows = GROUP_TABLE.select.where(groups.c.organization_id == organization_id)
        return self._page(GROUP_TABLE, rows, request, _SORT_COLUMNS)

    def count_members(self, ids: Collection[str]) -> Mapping[str, int]:
        return _count_members(self, group_members.c.group_id, ids)

    def list_of_user(self, user_id: str) -> tuple[tuple[Group, GroupMember], ...]:
        def read(row: Row) -> tuple[Group, GroupMember]:
            return GROUP_TABLE.from_row(row[_GROUP_PART]), MEMBER_TABLE.from_row(row[_MEMBER_PART])

        return self._fetch_values(read, _LIST_OF_USER, {"user": user_id})


class SqlGroupMemberStore(SqlEntityStore[GroupMember], GroupMemberStore):
    entity_table = MEMBER_TABLE

    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupMember]:
        rows = MEMBER_TABLE.select.where(group_members.c.group_id == group_id)
        return self._page_newest_first(MEMBER_TABLE, rows, request, search_column=group_members.c.user_id)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupMember, ...]:
        scopes = () if organization_id is None else (group_members.c.organization_id == organization_id,)
        return self._list_ending(after, until, limit, *scopes)


class SqlGroupGrantStore(SqlEntityStore[GroupGrant], GroupGrantStore):
    entity_table = GRANT_TABLE

    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupGrant]:
        rows = GRANT_TABLE.select.where(group_grants.c.group_id == group_id)
        return self._page_newest_first(GRANT_TABLE, rows, request, search_column=group_grants.c.project_id)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupGrant, ...]:
        # Few groups have roles with an end: those of all organizations are read.
        scopes = () if organization_id is None else (group_grants.c.organization_id == organization_id,)
        return self._list_ending(after, until, limit, *scopes)


#: The column with the foreign key that cascades from the resource, and its target. Those of the organization are
#: deleted with the group.
_PARENTS = {
    ManagerLevel.PROJECT: ("of_project", projects),
    ManagerLevel.PROJECT_GRANT: ("of_project_grant", project_grants),
}


class SqlGroupManagerStore(SqlEntityStore[GroupManager], GroupManagerStore):
    entity_table = MANAGER_TABLE

    def add(self, value: GroupManager) -> None:
        values = MANAGER_TABLE.to_row(value)
        if value.resource.level in _PARENTS:
            name, parents = _PARENTS[value.resource.level]
            # Looked up, so that it is set only if the resource exists.
            values[name] = select(parents.c.id).where(parents.c.id == value.resource.id).scalar_subquery()
        self._execute_in_savepoint(MANAGER_TABLE.insert.values(values))

    def page(self, group_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[GroupManager]:
        rows = MANAGER_TABLE.select.where(group_managers.c.group_id == group_id)
        return self._page_newest_first(MANAGER_TABLE, rows, request)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[GroupManager, ...]:
        # Few groups have roles with an end: those of all organizations are read.
        scopes = () if organization_id is None else (group_managers.c.organization_id == organization_id,)
        return self._list_ending(after, until, limit, *scopes)


class SqlGroupMappingStore(SqlEntityStore[GroupMapping], GroupMappingStore):
    entity_table = MAPPING_TABLE

    def list_of_provider(self, provider_id: str) -> tuple[GroupMapping, ...]:
        return self._fetch_values(MAPPING_TABLE.from_row, _MAPPINGS_OF_PROVIDER, {"provider": provider_id})

    def list_of_directory(self, organization_id: str, name: str) -> tuple[GroupMapping, ...]:
        parameters = {"directory": name, "organization": organization_id}
        return self._fetch_values(MAPPING_TABLE.from_row, _MAPPINGS_OF_DIRECTORY, parameters)

    def list_of_group(self, group_id: str) -> tuple[GroupMapping, ...]:
        return self._fetch_values(MAPPING_TABLE.from_row, _MAPPINGS_OF_GROUP, {"group": group_id})

    def count_members(self, ids: Collection[str]) -> Mapping[str, int]:
        return _count_members(self, group_members.c.mapping_id, ids)
