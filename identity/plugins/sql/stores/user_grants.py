"""User grants in SQL."""

from dataclasses import replace

from sqlalchemy import bindparam, or_, select

from identity.domain.projects import UserGrant
from identity.plugins.sql.codecs import set_of
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.mapping import row_of
from identity.plugins.sql.tables import project_grants
from identity.plugins.sql.tables import user_grants as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.user_grants import GrantedBy, UserGrantStore

ROWS = Entities[UserGrant](table)

_EFFECTIVE = (
    select(*ROWS.columns, project_grants.c.roles)
    .outerjoin(project_grants, project_grants.c.id == table.c.project_grant_id)
    .where(
        table.c.user_id == bindparam("user"),
        table.c.project_id.in_(bindparam("projects", expanding=True)),
        table.c.active,
        or_(table.c.project_grant_id.is_(None), project_grants.c.active),
    )
    .order_by(table.c.created_at.desc(), table.c.id.desc())
)


class SqlUserGrantStore(SqlEntityStore[UserGrant], UserGrantStore):
    """One row each."""

    rows = ROWS

    def page(
        self, by: GrantedBy, of: str, request: PageRequest = FIRST_PAGE, *, within: frozenset[str] | None = None
    ) -> Page[UserGrant]:
        statement = ROWS.select.where(table.c[by] == of)
        if request.query and within is not None:
            statement = statement.where(table.c.organization_id.in_(sorted(within)))
        searched = table.c.project_id if by == "user_id" else table.c.user_id
        return self._page_newest_first(ROWS, statement, request, by=searched)

    def effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        if not project_ids:
            return ()
        rows = self._all(_EFFECTIVE, {"user": user_id, "projects": list(project_ids)})
        return tuple(_allowed(ROWS.of(row[:-1]), row[-1]) for row in rows)


def _allowed(grant: UserGrant, allowed: str | None) -> UserGrant:
    return grant if allowed is None else replace(grant, roles=grant.roles & _granted_of((allowed,)))


_granted_of = row_of(project_grants.c.roles)(set_of)
