"""Managers in SQL."""

from sqlalchemy import bindparam, select

from identity.domain.managers import Manager
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.galera_locks import lock_names
from identity.plugins.sql.row_mapping import Values
from identity.plugins.sql.tables import managers as table
from identity.plugins.sql.tables import organizations, project_grants, projects, users
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.managers import ManagerStore

ENTITY_TABLE = EntityTable[Manager](table)

_RESOURCE_CONDITION = (table.c.level == bindparam("at_level"), table.c.resource_id == bindparam("at_id"))
_NEWEST_FIRST = (table.c.created_at.desc(), table.c.id.desc())

# The foreign keys that cascade from the resource are looked up, so that they are set only if it exists.
_ADD = ENTITY_TABLE.insert.values(
    of_organization=select(organizations.c.id)
    .where(organizations.c.id == bindparam("in_organization"))
    .scalar_subquery(),
    of_project=select(projects.c.id).where(projects.c.id == bindparam("in_project")).scalar_subquery(),
    of_project_grant=select(project_grants.c.id).where(project_grants.c.id == bindparam("in_grant")).scalar_subquery(),
)
_LIST_FOR_USER = ENTITY_TABLE.select.where(table.c.user_id == bindparam("user")).order_by(*_NEWEST_FIRST)
_LIST_FOR_USERS_OF_ORGANIZATION = (
    ENTITY_TABLE.select.join(users, users.c.id == table.c.user_id)
    .where(users.c.organization_id == bindparam("organization"))
    .order_by(*_NEWEST_FIRST)
)
_PAGE = ENTITY_TABLE.select.where(*_RESOURCE_CONDITION)
# Users and organizations are locked as well, so that a waiting transaction sees a deactivation, too; FOR NO KEY UPDATE,
# so that tokens can be issued to them meanwhile. SQLite has locked the whole database already.
_LOCK_BY_ROLE = (
    ENTITY_TABLE.select.join(users, users.c.id == table.c.user_id)
    .join(organizations, organizations.c.id == users.c.organization_id)
    .where(*_RESOURCE_CONDITION, users.c.active, organizations.c.active)
    .order_by(*_NEWEST_FIRST)
    .with_for_update(key_share=True)
)


class SqlManagerStore(SqlEntityStore[Manager], ManagerStore):
    entity_table = ENTITY_TABLE

    def add(self, value: Manager) -> None:
        level, id_ = value.resource.level, value.resource.id
        connections = {
            "in_organization": id_ if level is ManagerLevel.ORGANIZATION else None,
            "in_project": id_ if level is ManagerLevel.PROJECT else None,
            "in_grant": id_ if level is ManagerLevel.PROJECT_GRANT else None,
        }
        self._execute_in_savepoint(_ADD, ENTITY_TABLE.to_row(value) | connections)

    def list_for_user(self, user_id: str) -> tuple[Manager, ...]:
        return tuple(map(ENTITY_TABLE.from_row, self._fetch_all(_LIST_FOR_USER, {"user": user_id})))

    def list_for_users_of_organization(self, organization_id: str) -> tuple[Manager, ...]:
        return tuple(
            map(
                ENTITY_TABLE.from_row,
                self._fetch_all(_LIST_FOR_USERS_OF_ORGANIZATION, {"organization": organization_id}),
            )
        )

    def page(
        self,
        resource: ResourceKey,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[Manager]:
        statement = _PAGE.params(**_resource_parameters(resource))
        if organization_ids is not None:
            user_ids = select(users.c.id).where(users.c.organization_id.in_(sorted(organization_ids)))
            statement = statement.where(table.c.user_id.in_(user_ids))
        return self._page_newest_first(ENTITY_TABLE, statement, request)

    def lock_by_role(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        lock_names(self._connection, "holders", resource.level, resource.id)
        managers = map(ENTITY_TABLE.from_row, self._fetch_all(_LOCK_BY_ROLE, _resource_parameters(resource)))
        return tuple(manager for manager in managers if role in manager.roles)


def _resource_parameters(resource: ResourceKey) -> Values:
    return {"at_level": resource.level.value, "at_id": resource.id}
