"""Managers in SQL."""

from sqlalchemy import bindparam, select

from identity.domain.managers import Manager
from identity.domain.permissions import Level, ResourceKey
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.galera_locks import guard
from identity.plugins.sql.mapping import Values
from identity.plugins.sql.tables import managers as table
from identity.plugins.sql.tables import organizations, project_grants, projects, users
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.managers import ManagerStore

ROWS = Entities[Manager](table)

_AT_RESOURCE = (table.c.level == bindparam("at_level"), table.c.resource_id == bindparam("at_id"))
_NEWEST_FIRST = (table.c.created_at.desc(), table.c.id.desc())

# The foreign keys by which a manager goes with the resource are looked up, so that they are only set where it exists.
_ADD = ROWS.insert.values(
    of_organization=select(organizations.c.id)
    .where(organizations.c.id == bindparam("in_organization"))
    .scalar_subquery(),
    of_project=select(projects.c.id).where(projects.c.id == bindparam("in_project")).scalar_subquery(),
    of_project_grant=select(project_grants.c.id).where(project_grants.c.id == bindparam("in_grant")).scalar_subquery(),
)
_OF_USER = ROWS.select.where(table.c.user_id == bindparam("user")).order_by(*_NEWEST_FIRST)
_OF_USERS_OF = (
    ROWS.select.join(users, users.c.id == table.c.user_id)
    .where(users.c.organization_id == bindparam("organization"))
    .order_by(*_NEWEST_FIRST)
)
_PAGE = ROWS.select.where(*_AT_RESOURCE)
# Users and organizations are locked as well, so that one who waits sees a deactivation too; FOR NO KEY UPDATE, so that
# tokens can be issued to them meanwhile. SQLite has locked the whole database already.
_LOCK_HOLDERS = (
    ROWS.select.join(users, users.c.id == table.c.user_id)
    .join(organizations, organizations.c.id == users.c.organization_id)
    .where(*_AT_RESOURCE, users.c.active, organizations.c.active)
    .order_by(*_NEWEST_FIRST)
    .with_for_update(key_share=True)
)


class SqlManagerStore(SqlEntityStore[Manager], ManagerStore):
    """One row each."""

    rows = ROWS

    def add(self, value: Manager) -> None:
        level, id_ = value.resource.level, value.resource.id
        connections = {
            "in_organization": id_ if level is Level.ORGANIZATION else None,
            "in_project": id_ if level is Level.PROJECT else None,
            "in_grant": id_ if level is Level.PROJECT_GRANT else None,
        }
        self._try(_ADD, ROWS.values(value) | connections)

    def of_user(self, user_id: str) -> tuple[Manager, ...]:
        return tuple(map(ROWS.of, self._all(_OF_USER, {"user": user_id})))

    def of_users_of(self, organization_id: str) -> tuple[Manager, ...]:
        return tuple(map(ROWS.of, self._all(_OF_USERS_OF, {"organization": organization_id})))

    def page(
        self, resource: ResourceKey, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[Manager]:
        statement = _PAGE.params(**_at(resource))
        if within is not None:
            theirs = select(users.c.id).where(users.c.organization_id.in_(sorted(within)))
            statement = statement.where(table.c.user_id.in_(theirs))
        return self._page_newest_first(ROWS, statement, request)

    def lock_holders(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        guard(self._connection, "holders", resource.level, resource.id)
        managers = map(ROWS.of, self._all(_LOCK_HOLDERS, _at(resource)))
        return tuple(manager for manager in managers if role in manager.roles)


def _at(resource: ResourceKey) -> Values:
    return {"at_level": resource.level.value, "at_id": resource.id}
