"""Projects and their roles in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Table, bindparam, delete, func, insert, or_, select, update

from identity.domain.expirations import NEVER
from identity.domain.names import name_key
from identity.domain.projects import Project, ProjectRole
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import (
    Values,
    find_by_id,
    find_many_by_id,
    moment,
    readable,
    row_of,
    seconds,
    set_of,
    sorted_list,
    versioned,
)
from identity.plugins.sql.tables import applications, organizations, project_grants, project_roles, user_grants
from identity.plugins.sql.tables import projects as table
from identity.storage.errors import Missing, Stale
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.projects import ProjectStore

COLUMNS = (
    table.c.id,
    table.c.organization_id,
    table.c.name,
    table.c.created_at,
    table.c.changed_at,
    table.c.assert_roles,
    table.c.check_roles,
    table.c.active,
    table.c.version,
)
_ROLE_COLUMNS = (
    project_roles.c.project_id,
    project_roles.c.key,
    project_roles.c.display_name,
    project_roles.c.group,
    project_roles.c.version,
)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
_FIND_MANY = find_many_by_id(table, COLUMNS)
_UPDATE = versioned(table)
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = select(*COLUMNS).where(table.c.organization_id == bindparam("organization"))
_APPLICATIONS = select(func.count()).where(applications.c.project_id == table.c.id).scalar_subquery()
_NUMBER_OF_ROLES = select(func.count()).where(project_roles.c.project_id == table.c.id).scalar_subquery()
_COUNTS = find_many_by_id(table, (table.c.id, _APPLICATIONS, _NUMBER_OF_ROLES))
_HELD = (
    select(project_grants.c.id)
    .where(
        project_grants.c.project_id == table.c.id,
        project_grants.c.organization_id == bindparam("organization"),
        project_grants.c.active,
        project_grants.c.created_at <= bindparam("granted_by"),
    )
    .exists()
)
_AUDIENCE = (
    select(table.c.id)
    .join(organizations, organizations.c.id == table.c.organization_id)
    .where(
        table.c.id.in_(bindparam("ids", expanding=True)),
        table.c.active,
        organizations.c.active,
        or_(table.c.organization_id == bindparam("organization"), _HELD),
    )
)
_THIS_ROLE = (project_roles.c.project_id == bindparam("project"), project_roles.c.key == bindparam("role"))
_ADD_ROLE = insert(project_roles)
_UPDATE_ROLE = update(project_roles).where(*_THIS_ROLE, project_roles.c.version == bindparam("previous"))
_FIND_ROLE = select(project_roles.c.version).where(*_THIS_ROLE)
_REMOVE_ROLE = delete(project_roles).where(*_THIS_ROLE)
_ROLES = select(*_ROLE_COLUMNS).where(project_roles.c.project_id == bindparam("project")).order_by(project_roles.c.key)
_ORDERS = {
    "name": table.c.name_key,
    "created_at": table.c.created_at,
}


class SqlProjectStore(PagedStore, ProjectStore):
    """One row each; what belongs to it goes by foreign keys."""

    def add(self, project: Project) -> None:
        """Store a new project."""
        self._try(_ADD, _values(project))

    def find(self, project_id: str) -> Project | None:
        """The project with this id."""
        row = self._one(_FIND, {"key": project_id})
        return None if row is None else project_of(*row)

    def find_many(self, ids: Collection[str]) -> Mapping[str, Project]:
        """The projects with these ids."""
        return {each.id: each for each in self._many(_FIND_MANY, ids, project_of)}

    def update(self, project: Project) -> None:
        """Replace the stored value."""
        self._replace(_UPDATE, _values(project))

    def remove(self, project_id: str) -> None:
        """Delete it with all that is its own."""
        self._touch_one(_REMOVE, {"key": project_id})

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[Project]:
        """The organization's projects by name."""
        return self._page(_PAGE.params(organization=organization_id), table, request, project_of, _ORDERS)

    def counts(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """How many applications and how many roles each of these projects has."""
        return dict(self._many(_COUNTS, ids, lambda id_, applications, roles: (id_, (applications, roles))))

    def audience(
        self, project_ids: frozenset[str], organization_id: str, granted_by: datetime = NEVER
    ) -> frozenset[str]:
        """Those of the projects that a user of the organization may have in a token's audience."""
        if not project_ids:
            return frozenset()
        asked = {"ids": list(project_ids), "organization": organization_id, "granted_by": seconds(granted_by)}
        rows = self._all(_AUDIENCE, asked)
        return frozenset(row[0] for row in rows)

    def add_role(self, role: ProjectRole) -> None:
        """Store a new role."""
        self._try(_ADD_ROLE, {"project_id": role.project_id, "key": role.key, **_role_values(role)})

    def update_role(self, role: ProjectRole) -> None:
        """Replace display name and group by the next version."""
        this = {"project": role.project_id, "role": role.key}
        if self._change(_UPDATE_ROLE, {**this, **_role_values(role), "previous": role.version - 1}):
            return
        raise Missing if self._one(_FIND_ROLE, this) is None else Stale

    def remove_role(self, project_id: str, key: str) -> None:
        """Delete the role, and take it out of project grants and user grants."""
        if not self._change(_REMOVE_ROLE, {"project": project_id, "role": key}):
            raise Missing
        self._withdraw(project_grants, project_id, key)
        self._withdraw(user_grants, project_id, key)

    def roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        """The project's roles by key."""
        return tuple(readable(_role_of, self._all(_ROLES, {"project": project_id})))

    def _withdraw(self, grants: Table, project_id: str, key: str) -> None:
        """Take the role out of grants; their version moves, so that nobody who read them before puts it back."""
        locked = select(grants.c.id, grants.c.roles).where(grants.c.project_id == bindparam("project"))
        narrow = update(grants).where(grants.c.id == bindparam("grant")).values(version=grants.c.version + 1)
        held = row_of(grants.c.id, grants.c.roles)(lambda id_, roles: (id_, set_of(roles)))
        for row in self._all(locked.order_by(grants.c.id).with_for_update(), {"project": project_id}):
            grant_id, roles = held(*row)
            if key in roles:
                self._change(narrow, {"grant": grant_id, "roles": sorted_list(roles - {key})})


@row_of(*COLUMNS)
def project_of(
    id_: str,
    organization_id: str,
    name: str,
    created_at: int,
    changed_at: int,
    assert_roles: bool,
    check_roles: bool,
    active: bool,
    version: int,
) -> Project:
    """The project in a row of ``COLUMNS``."""
    return Project(
        id=id_,
        organization_id=organization_id,
        name=name,
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        assert_roles=assert_roles,
        check_roles=check_roles,
        active=active,
        version=version,
    )


@row_of(*_ROLE_COLUMNS)
def _role_of(project_id: str, key: str, display_name: str, group: str, version: int) -> ProjectRole:
    return ProjectRole(project_id=project_id, key=key, display_name=display_name, group=group, version=version)


def _values(project: Project) -> Values:
    return {
        "id": project.id,
        "organization_id": project.organization_id,
        "name": project.name,
        "name_key": name_key(project.name),
        "search_text": project.search_text,
        "created_at": seconds(project.created_at),
        "changed_at": seconds(project.changed_at),
        "assert_roles": project.assert_roles,
        "check_roles": project.check_roles,
        "active": project.active,
        "version": project.version,
    }


def _role_values(role: ProjectRole) -> Values:
    return {"display_name": role.display_name, "group": role.group, "version": role.version}
