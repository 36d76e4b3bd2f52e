"""Managers in SQL."""

from sqlalchemy import bindparam, delete, insert, select

from identity.domain.managers import Manager
from identity.domain.permissions import Level, ResourceKey
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import Values, find_by_id, moment, row_of, seconds, set_of, sorted_list, versioned
from identity.plugins.sql.tables import managers as table
from identity.plugins.sql.tables import organizations, project_grants, projects, users
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.managers import ManagerStore

COLUMNS = (
    table.c.id,
    table.c.user_id,
    table.c.level,
    table.c.resource_id,
    table.c.roles,
    table.c.created_at,
    table.c.changed_at,
    table.c.organization_id,
    table.c.version,
)

_AT_RESOURCE = (table.c.level == bindparam("at_level"), table.c.resource_id == bindparam("at_id"))
_NEWEST_FIRST = (table.c.created_at.desc(), table.c.id.desc())

# The foreign keys by which a manager goes with the resource are looked up, so that they are only set where it exists.
_ADD = insert(table).values(
    of_organization=select(organizations.c.id)
    .where(organizations.c.id == bindparam("in_organization"))
    .scalar_subquery(),
    of_project=select(projects.c.id).where(projects.c.id == bindparam("in_project")).scalar_subquery(),
    of_project_grant=select(project_grants.c.id).where(project_grants.c.id == bindparam("in_grant")).scalar_subquery(),
)
_FIND = find_by_id(table, COLUMNS)
_FIND_FOR = select(*COLUMNS).where(table.c.user_id == bindparam("user"), *_AT_RESOURCE)
_OF_USER = select(*COLUMNS).where(table.c.user_id == bindparam("user")).order_by(*_NEWEST_FIRST)
_OF_USERS_OF = (
    select(*COLUMNS)
    .join(users, users.c.id == table.c.user_id)
    .where(users.c.organization_id == bindparam("organization"))
    .order_by(*_NEWEST_FIRST)
)
_UPDATE = versioned(table)
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = select(*COLUMNS).where(*_AT_RESOURCE)
# Users and organizations are locked as well, so that one who waits sees a deactivation too; FOR NO KEY UPDATE, so that
# tokens can be issued to them meanwhile. SQLite has locked the whole database already.
_LOCK_HOLDERS = (
    select(*COLUMNS)
    .join(users, users.c.id == table.c.user_id)
    .join(organizations, organizations.c.id == users.c.organization_id)
    .where(*_AT_RESOURCE, users.c.active, organizations.c.active)
    .order_by(*_NEWEST_FIRST)
    .with_for_update(key_share=True)
)


class SqlManagerStore(PagedStore, ManagerStore):
    """One row each."""

    def add(self, manager: Manager) -> None:
        """Store a new manager."""
        level, id_ = manager.resource.level, manager.resource.id
        links = {
            "in_organization": id_ if level is Level.ORGANIZATION else None,
            "in_project": id_ if level is Level.PROJECT else None,
            "in_grant": id_ if level is Level.PROJECT_GRANT else None,
        }
        self._try(_ADD, _values(manager) | links)

    def find(self, manager_id: str) -> Manager | None:
        """The manager with this id."""
        row = self._one(_FIND, {"key": manager_id})
        return None if row is None else _manager_of(*row)

    def find_for(self, user_id: str, resource: ResourceKey) -> Manager | None:
        """What the user holds at this very resource."""
        row = self._one(_FIND_FOR, {"user": user_id, **_at(resource)})
        return None if row is None else _manager_of(*row)

    def of_user(self, user_id: str) -> tuple[Manager, ...]:
        """Everything the user holds anywhere, in one query."""
        return tuple(_manager_of(*row) for row in self._all(_OF_USER, {"user": user_id}))

    def of_users_of(self, organization_id: str) -> tuple[Manager, ...]:
        """Everything that users of the organization hold anywhere, in one query."""
        return tuple(_manager_of(*row) for row in self._all(_OF_USERS_OF, {"organization": organization_id}))

    def update(self, manager: Manager) -> None:
        """Replace the stored value."""
        self._replace(_UPDATE, _values(manager))

    def remove(self, manager_id: str) -> None:
        """Delete it."""
        self._touch_one(_REMOVE, {"key": manager_id})

    def page(self, resource: ResourceKey, request: PageRequest = FIRST_PAGE) -> Page[Manager]:
        """The managers of a resource."""
        return self._page_newest_first(_PAGE.params(**_at(resource)), table, request, _manager_of)

    def lock_holders(self, resource: ResourceKey, role: str) -> tuple[Manager, ...]:
        """The managers of the resource who hold the role and may sign in, locked until the transaction ends."""
        managers = (_manager_of(*row) for row in self._all(_LOCK_HOLDERS, _at(resource)))
        return tuple(manager for manager in managers if role in manager.roles)


def _at(resource: ResourceKey) -> Values:
    return {"at_level": resource.level.value, "at_id": resource.id}


@row_of(*COLUMNS)
def _manager_of(
    id_: str,
    user_id: str,
    level: str,
    resource_id: str,
    roles: str,
    created_at: int,
    changed_at: int,
    organization_id: str | None,
    version: int,
) -> Manager:
    return Manager(
        id=id_,
        user_id=user_id,
        resource=ResourceKey(Level(level), resource_id),
        roles=set_of(roles),
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        organization_id=organization_id,
        version=version,
    )


def _values(manager: Manager) -> Values:
    return {
        "id": manager.id,
        "user_id": manager.user_id,
        "level": manager.resource.level.value,
        "resource_id": manager.resource.id,
        "roles": sorted_list(manager.roles),
        "created_at": seconds(manager.created_at),
        "changed_at": seconds(manager.changed_at),
        "organization_id": manager.organization_id,
        "version": manager.version,
    }
