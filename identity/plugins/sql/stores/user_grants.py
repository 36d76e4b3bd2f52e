"""User grants in SQL."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Select, bindparam, delete, insert, or_, select

from identity.domain.projects import UserGrant
from identity.plugins.sql.paging import PagedStore
from identity.plugins.sql.rows import Values, find_by_id, moment, row_of, seconds, set_of, sorted_list, versioned
from identity.plugins.sql.tables import project_grants
from identity.plugins.sql.tables import user_grants as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.user_grants import UserGrantStore

COLUMNS = (
    table.c.id,
    table.c.user_id,
    table.c.organization_id,
    table.c.project_id,
    table.c.roles,
    table.c.created_at,
    table.c.changed_at,
    table.c.project_grant_id,
    table.c.active,
    table.c.version,
)

_ADD = insert(table)
_FIND = find_by_id(table, COLUMNS)
_UPDATE = versioned(table)
_REMOVE = delete(table).where(table.c.id == bindparam("key"))
_PAGE_OF_USER = select(*COLUMNS).where(table.c.user_id == bindparam("user"))
_PAGE_OF_PROJECT = select(*COLUMNS).where(table.c.project_id == bindparam("project"))
_PAGE_OF_PROJECT_GRANT = select(*COLUMNS).where(table.c.project_grant_id == bindparam("project_grant"))
_EFFECTIVE = (
    select(*COLUMNS, project_grants.c.roles)
    .outerjoin(project_grants, project_grants.c.id == table.c.project_grant_id)
    .where(
        table.c.user_id == bindparam("user"),
        table.c.project_id.in_(bindparam("projects", expanding=True)),
        table.c.active,
        or_(table.c.project_grant_id.is_(None), project_grants.c.active),
    )
    .order_by(table.c.created_at.desc(), table.c.id.desc())
)


class SqlUserGrantStore(PagedStore, UserGrantStore):
    """One row each."""

    def add(self, grant: UserGrant) -> None:
        """Store a new grant."""
        self._try(_ADD, _values(grant))

    def find(self, grant_id: str) -> UserGrant | None:
        """The grant with this id."""
        row = self._one(_FIND, {"key": grant_id})
        return None if row is None else _grant_of(*row)

    def update(self, grant: UserGrant) -> None:
        """Replace the stored value."""
        self._replace(_UPDATE, _values(grant))

    def remove(self, grant_id: str) -> None:
        """Delete it."""
        self._touch_one(_REMOVE, {"key": grant_id})

    def page_of_user(self, user_id: str, request: PageRequest = FIRST_PAGE) -> Page[UserGrant]:
        """The grants of a user."""
        return self._page_newest_first(
            _PAGE_OF_USER.params(user=user_id), table, request, _grant_of, by=table.c.project_id
        )

    def page_of_project(
        self, project_id: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        """The grants in a project."""
        return self._page_by_user(_PAGE_OF_PROJECT.params(project=project_id), request, within)

    def page_of_project_grant(
        self, project_grant_id: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        """The grants that derive from a project grant."""
        return self._page_by_user(_PAGE_OF_PROJECT_GRANT.params(project_grant=project_grant_id), request, within)

    def _page_by_user(
        self, statement: Select[Any], request: PageRequest, within: frozenset[str] | None
    ) -> Page[UserGrant]:
        if request.query and within is not None:
            statement = statement.where(table.c.organization_id.in_(sorted(within)))
        return self._page_newest_first(statement, table, request, _grant_of, by=table.c.user_id)

    def effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        """The user's active grants in these projects, with roles narrowed to what a project grant allows."""
        if not project_ids:
            return ()
        rows = self._all(_EFFECTIVE, {"user": user_id, "projects": list(project_ids)})
        return tuple(_allowed(_grant_of(*row[:-1]), row[-1]) for row in rows)


def _allowed(grant: UserGrant, allowed: str | None) -> UserGrant:
    return grant if allowed is None else replace(grant, roles=grant.roles & _granted_of(allowed))


_granted_of = row_of(project_grants.c.roles)(set_of)


@row_of(*COLUMNS)
def _grant_of(
    id_: str,
    user_id: str,
    organization_id: str,
    project_id: str,
    roles: str,
    created_at: int,
    changed_at: int,
    project_grant_id: str | None,
    active: bool,
    version: int,
) -> UserGrant:
    return UserGrant(
        id=id_,
        user_id=user_id,
        organization_id=organization_id,
        project_id=project_id,
        roles=set_of(roles),
        created_at=moment(created_at),
        changed_at=moment(changed_at),
        project_grant_id=project_grant_id,
        active=active,
        version=version,
    )


def _values(grant: UserGrant) -> Values:
    return {
        "id": grant.id,
        "user_id": grant.user_id,
        "organization_id": grant.organization_id,
        "project_id": grant.project_id,
        "roles": sorted_list(grant.roles),
        "created_at": seconds(grant.created_at),
        "changed_at": seconds(grant.changed_at),
        "project_grant_id": grant.project_grant_id,
        "active": grant.active,
        "version": grant.version,
    }
