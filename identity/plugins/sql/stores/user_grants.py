"""User grants in SQL."""

from dataclasses import replace

from sqlalchemy import bindparam, or_, select

from identity.domain.projects import UserGrant
from identity.plugins.sql.column_codecs import parse_set
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.row_mapping import row_reader
from identity.plugins.sql.tables import project_grants
from identity.plugins.sql.tables import user_grants as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.user_grants import UserGrantFilterField, UserGrantStore

ENTITY_TABLE = EntityTable[UserGrant](table)

_LIST_EFFECTIVE = (
    select(*ENTITY_TABLE.columns, project_grants.c.roles)
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
    entity_table = ENTITY_TABLE

    def page(
        self,
        filter_field: UserGrantFilterField,
        filter_id: str,
        request: PageRequest = FIRST_PAGE,
        *,
        organization_ids: frozenset[str] | None = None,
    ) -> ResultPage[UserGrant]:
        statement = ENTITY_TABLE.select.where(table.c[filter_field] == filter_id)
        if request.query and organization_ids is not None:
            statement = statement.where(table.c.organization_id.in_(sorted(organization_ids)))
        searched = table.c.project_id if filter_field == "user_id" else table.c.user_id
        return self._page_newest_first(ENTITY_TABLE, statement, request, search_column=searched)

    def list_effective(self, user_id: str, project_ids: frozenset[str]) -> tuple[UserGrant, ...]:
        if not project_ids:
            return ()
        rows = self._fetch_all(_LIST_EFFECTIVE, {"user": user_id, "projects": list(project_ids)})
        return tuple(_limit_to_project_grant(ENTITY_TABLE.from_row(row[:-1]), row[-1]) for row in rows)


def _limit_to_project_grant(grant: UserGrant, project_grant_roles: str | None) -> UserGrant:
    return (
        grant
        if project_grant_roles is None
        else replace(grant, roles=grant.roles & _read_granted_roles((project_grant_roles,)))
    )


_read_granted_roles = row_reader(project_grants.c.roles)(parse_set)
