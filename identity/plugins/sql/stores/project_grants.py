"""Project grants in SQL."""

from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, delete, insert, select

from identity.domain.projects import ProjectGrant
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import (
    Values,
    find_by_id,
    find_many_by_id,
    moment,
    row_of,
    seconds,
    set_of,
    sorted_list,
    versioned,
)
from identity.plugins.sql.tables import project_grants as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.project_grants import ProjectGrantStore

COLUMNS = (
    table.c.id,
    table.c.project_id,
    table.c.organization_id,
    table.c.roles,
    table.c.created_at,
    table.c.changed_at,
    table.c.accepted,
    table.c.active,
    table.c.version,
)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
_FIND_MANY = find_many_by_id(table, COLUMNS)
_FIND_FOR = select(*COLUMNS).where(
    table.c.project_id == bindparam("project"), table.c.organization_id == bindparam("organization")
)
_UPDATE = versioned(table)
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE = select(*COLUMNS).where(table.c.project_id == bindparam("project"))
_PAGE_HELD = select(*COLUMNS).where(table.c.organization_id == bindparam("organization"))


class SqlProjectGrantStore(PagedStore, ProjectGrantStore):
    """One row each; user grants and managers that derive from it go by foreign keys."""

    def add(self, grant: ProjectGrant) -> None:
        """Store a new grant."""
        self._try(_ADD, _values(grant))

    def find(self, grant_id: str) -> ProjectGrant | None:
        """The grant with this id."""
        row = self._one(_FIND, {"key": grant_id})
        return None if row is None else _grant_of(*row)

    def find_many(self, ids: Collection[str]) -> Mapping[str, ProjectGrant]:
        """The grants with these ids."""
        return {each.id: each for each in self._many(_FIND_MANY, ids, _grant_of)}

    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        """The grant of this project to this organization."""
        row = self._one(_FIND_FOR, {"project": project_id, "organization": organization_id})
        return None if row is None else _grant_of(*row)

    def update(self, grant: ProjectGrant) -> None:
        """Replace the stored value."""
        self._replace(_UPDATE, _values(grant))

    def remove(self, grant_id: str) -> None:
        """Delete it with what derives from it."""
        self._touch_one(_REMOVE, {"key": grant_id})

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants of a project."""
        statement = _PAGE.params(project=project_id)
        return self._page_newest_first(statement, table, request, _grant_of, by=table.c.organization_id)

    def page_held(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        """The grants that an organization holds."""
        statement = _PAGE_HELD.params(organization=organization_id)
        return self._page_newest_first(statement, table, request, _grant_of, by=table.c.project_id)


@row_of(*COLUMNS)
def _grant_of(
    id_: str,
    project_id: str,
    organization_id: str,
    roles: str,
    created_at: int,
    changed_at: int,
    accepted: bool,
    active: bool,
    version: int,
) -> ProjectGrant:
    return ProjectGrant(
        id=id_,
        project_id=project_id,
        organization_id=organization_id,
        roles=set_of(roles),
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        accepted=accepted,
        active=active,
        version=version,
    )


def _values(grant: ProjectGrant) -> Values:
    return {
        "id": grant.id,
        "project_id": grant.project_id,
        "organization_id": grant.organization_id,
        "roles": sorted_list(grant.roles),
        "created_at": seconds(grant.created_at),
        "changed_at": seconds(grant.changed_at),
        "accepted": grant.accepted,
        "active": grant.active,
        "version": grant.version,
    }
