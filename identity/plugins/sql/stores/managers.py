"""Managers in SQL."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, Table, bindparam, func, select, union_all

from identity.domain.expirations import earliest
from identity.domain.managers import Manager
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.plugins.sql.column_codecs import datetime_from_seconds, seconds_from_datetime
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore, has_not_ended
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.row_mapping import Row, row_reader
from identity.plugins.sql.stores.groups import select_through_groups
from identity.plugins.sql.tables import (
    group_managers,
    group_members,
    groups,
    organizations,
    project_grants,
    projects,
    users,
)
from identity.plugins.sql.tables import managers as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.managers import ManagerStore

ENTITY_TABLE = EntityTable[Manager](table)

_NEWEST_FIRST = (table.c.created_at.desc(), table.c.id.desc())

#: The column with the foreign key that cascades from the resource, and its target.
_PARENTS = {
    ManagerLevel.ORGANIZATION: ("of_organization", organizations),
    ManagerLevel.PROJECT: ("of_project", projects),
    ManagerLevel.PROJECT_GRANT: ("of_project_grant", project_grants),
}
_LIST_FOR_USER = ENTITY_TABLE.select.where(table.c.user_id == bindparam("user")).order_by(*_NEWEST_FIRST)


def _effective(roles: Select[Any], source: Table, user: Table) -> Select[Any]:
    """Those of the roles that are effective, with the end of the project grant, and that of the membership: in a row
    of ``user`` who has them."""
    return (
        roles.add_columns(project_grants.c.until.label("granted_until"), user.c.until.label("membership_until"))
        .outerjoin(project_grants, project_grants.c.id == source.c.of_project_grant)
        .where(has_not_ended(project_grants))
    )


_DIRECT = _effective(ENTITY_TABLE.select.where(has_not_ended(table)), table, table)
# The owner of the resource: that of the project that was granted, or the group's own organization.
_OWNER = func.coalesce(projects.c.organization_id, group_managers.c.organization_id)
_THROUGH_GROUPS = _effective(
    select_through_groups(ENTITY_TABLE, group_managers, organization_id=_OWNER), group_managers, group_members
).outerjoin(projects, projects.c.id == project_grants.c.project_id)


def _both(direct: Select[Any], through_groups: Select[Any]) -> CompoundSelect[Any]:
    columns = direct.selected_columns
    return union_all(direct, through_groups).order_by(columns.created_at.desc(), columns.id.desc())


_LIST_EFFECTIVE = _both(
    _DIRECT.where(table.c.user_id == bindparam("user")),
    _THROUGH_GROUPS.where(group_members.c.user_id == bindparam("user")),
)
_LIST_FOR_USERS_OF_ORGANIZATION = _both(
    _DIRECT.join(users, users.c.id == table.c.user_id).where(users.c.organization_id == bindparam("organization")),
    # Members are users of the group's organization.
    _THROUGH_GROUPS.where(groups.c.organization_id == bindparam("organization")),
)
_WITH_USER = ENTITY_TABLE.select.join(users, users.c.id == table.c.user_id)
# Users and organizations are locked as well, so that a waiting transaction sees a deactivation, too; FOR NO KEY UPDATE,
# so that tokens can be issued to them meanwhile. SQLite has locked the whole database already.
_LOCK_ACTIVE = (
    _WITH_USER.join(organizations, organizations.c.id == users.c.organization_id)
    .where(users.c.active, organizations.c.active, table.c.until.is_(None))
    .order_by(*_NEWEST_FIRST)
    .with_for_update(key_share=True)
)


class SqlManagerStore(SqlEntityStore[Manager], ManagerStore):
    entity_table = ENTITY_TABLE

    def add(self, value: Manager) -> None:
        values = ENTITY_TABLE.to_row(value)
        if value.resource.level in _PARENTS:
            # Looked up, so that it is set only if the resource exists.
            name, parents = _PARENTS[value.resource.level]
            values[name] = select(parents.c.id).where(parents.c.id == value.resource.id).scalar_subquery()
        self._execute_in_savepoint(ENTITY_TABLE.insert.values(values))

    def list_for_user(self, user_id: str) -> tuple[Manager, ...]:
        return tuple(map(ENTITY_TABLE.from_row, self._fetch_all(_LIST_FOR_USER, {"user": user_id})))

    def list_effective(self, user_id: str, now: datetime) -> tuple[Manager, ...]:
        return self._fetch_effective(_LIST_EFFECTIVE, now, user=user_id)

    def list_for_users_of_organization(self, organization_id: str, now: datetime) -> tuple[Manager, ...]:
        return self._fetch_effective(_LIST_FOR_USERS_OF_ORGANIZATION, now, organization=organization_id)

    def _fetch_effective(self, statement: CompoundSelect[Any], now: datetime, **parameters: str) -> tuple[Manager, ...]:
        rows = self._fetch_all(statement, {**parameters, "now": seconds_from_datetime(now)})
        return tuple(_limit(ENTITY_TABLE.from_row(row[:-2]), row[-2:]) for row in rows)

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[Manager, ...]:
        # Few managers have an end: those of all organizations are read.
        scopes = () if organization_id is None else (table.c.organization_id == organization_id,)
        return self._list_ending(after, until, limit, *scopes)

    def page(
        self,
        resource: ResourceKey,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[Manager]:
        statement = ENTITY_TABLE.select.where(*_is_at(resource))
        if organization_ids is not None:
            user_ids = select(users.c.id).where(users.c.organization_id.in_(sorted(organization_ids)))
            statement = statement.where(table.c.user_id.in_(user_ids))
        return self._page_newest_first(ENTITY_TABLE, statement, request)

    def lock_by_role(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        lock_names(self._connection, "holders", resource.level, resource.id)
        managers = map(ENTITY_TABLE.from_row, self._fetch_all(_LOCK_ACTIVE.where(*_is_at(resource))))
        return tuple(manager for manager in managers if role in manager.roles)


def _is_at(resource: ResourceKey) -> tuple[ColumnElement[bool], ...]:
    return table.c.level == resource.level.value, table.c.resource_id == resource.id


def _limit(manager: Manager, ends: Row) -> Manager:
    """The roles with the earliest end: their own, or that of the project grant or of the membership."""
    ends = [_read_until([end]) for end in ends if end is not None]
    return replace(manager, until=earliest((manager.until, *ends))) if ends else manager


_read_until = row_reader(project_grants.c.until)(datetime_from_seconds)
