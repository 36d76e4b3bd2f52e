"""Projects and their roles in SQL."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Table, bindparam, delete, func, or_, select, update

from identity.domain.expirations import NEVER
from identity.domain.projects import Project, ProjectRole
from identity.plugins.sql.batching import ListQuery
from identity.plugins.sql.codecs import seconds, set_of, sorted_list
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.mapping import Mapped, row_of
from identity.plugins.sql.rows import find_many_by_id
from identity.plugins.sql.tables import applications, organizations, project_grants, project_roles, user_grants
from identity.plugins.sql.tables import projects as table
from identity.storage.errors import Missing, Stale
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.projects import ProjectStore

ROWS = Entities[Project](table)
_ROLE_ROWS = Mapped[ProjectRole](project_roles)

_PAGE = ROWS.select.where(table.c.organization_id == bindparam("organization"))
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
_IN_AUDIENCE = ListQuery(
    select(table.c.id)
    .select_from(table)
    .join(organizations, organizations.c.id == table.c.organization_id)
    .where(
        table.c.active,
        organizations.c.active,
        or_(table.c.organization_id == bindparam("organization"), _HELD),
    ),
    table.c.id,
)
_THIS_ROLE = (project_roles.c.project_id == bindparam("project"), project_roles.c.key == bindparam("role"))
_UPDATE_ROLE = update(project_roles).where(*_THIS_ROLE, project_roles.c.version == bindparam("previous"))
_FIND_ROLE = select(project_roles.c.version).where(*_THIS_ROLE)
_REMOVE_ROLE = delete(project_roles).where(*_THIS_ROLE)
_ROLES = _ROLE_ROWS.select.where(project_roles.c.project_id == bindparam("project")).order_by(project_roles.c.key)
_ORDERS = {
    "name": table.c.name_key,
    "created_at": table.c.created_at,
}


class SqlProjectStore(SqlEntityStore[Project], ProjectStore):
    """One row each; what belongs to it goes by foreign keys."""

    rows = ROWS

    def page(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[Project]:
        return self._page(ROWS, _PAGE.params(organization=organization_id), request, _ORDERS)

    def counts(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        return dict(self._many(_COUNTS, ids, lambda row: (row[0], (row[1], row[2]))))

    def audience(
        self, project_ids: frozenset[str], organization_id: str, granted_by: datetime = NEVER
    ) -> frozenset[str]:
        if not project_ids:
            return frozenset()
        statement, parameters = _IN_AUDIENCE.of(project_ids)
        parameters |= {"organization": organization_id, "granted_by": seconds(granted_by)}
        return frozenset([row[0] for row in self._all(statement, parameters)])

    def add_role(self, role: ProjectRole) -> None:
        self._try(_ROLE_ROWS.insert, _ROLE_ROWS.values(role))

    def update_role(self, role: ProjectRole) -> None:
        values = _ROLE_ROWS.values(role)
        this = {"project": values.pop("project_id"), "role": values.pop("key")}
        if self._change(_UPDATE_ROLE, {**this, **values, "previous": role.version - 1}):
            return
        raise Missing if self._one(_FIND_ROLE, this) is None else Stale

    def remove_role(self, project_id: str, key: str) -> None:
        self._touch_one(_REMOVE_ROLE, {"project": project_id, "role": key})
        self._withdraw(project_grants, project_id, key)
        self._withdraw(user_grants, project_id, key)

    def roles(self, project_id: str) -> tuple[ProjectRole, ...]:
        return self._list(_ROLE_ROWS.of, _ROLES, {"project": project_id})

    def _withdraw(self, grants: Table, project_id: str, key: str) -> None:
        """Take the role out of grants; their version moves, so that nobody who read them before puts it back."""
        locked = select(grants.c.id, grants.c.roles).where(grants.c.project_id == bindparam("project"))
        narrow = update(grants).where(grants.c.id == bindparam("grant")).values(version=grants.c.version + 1)
        held = row_of(grants.c.id, grants.c.roles)(lambda id_, roles: (id_, set_of(roles)))
        for row in self._all(locked.order_by(grants.c.id).with_for_update(), {"project": project_id}):
            grant_id, roles = held(row)
            if key in roles:
                self._change(narrow, {"grant": grant_id, "roles": sorted_list(roles - {key})})
