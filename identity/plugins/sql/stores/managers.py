"""Managers in SQL."""

from sqlalchemy import ColumnElement, bindparam, select

from identity.domain.managers import Manager
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.tables import managers as table
from identity.plugins.sql.tables import organizations, project_grants, projects, users
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
_WITH_USER = ENTITY_TABLE.select.join(users, users.c.id == table.c.user_id)
# Users and organizations are locked as well, so that a waiting transaction sees a deactivation, too; FOR NO KEY UPDATE,
# so that tokens can be issued to them meanwhile. SQLite has locked the whole database already.
_LOCK_ACTIVE = (
    _WITH_USER.join(organizations, organizations.c.id == users.c.organization_id)
    .where(users.c.active, organizations.c.active)
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

    def list_for_users_of_organization(self, organization_id: str) -> tuple[Manager, ...]:
        found = _WITH_USER.where(users.c.organization_id == organization_id).order_by(*_NEWEST_FIRST)
        return tuple(map(ENTITY_TABLE.from_row, self._fetch_all(found)))

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
