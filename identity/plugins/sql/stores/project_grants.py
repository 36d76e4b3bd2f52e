"""Project grants in SQL."""

from datetime import datetime

from sqlalchemy import select

from identity.domain.projects import ProjectGrant
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.tables import project_grants as table
from identity.plugins.sql.tables import projects
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.project_grants import ProjectGrantFilterField, ProjectGrantStore

ENTITY_TABLE = EntityTable[ProjectGrant](table)

#: The column that a search looks at.
_OTHER_FIELD = {"project_id": table.c.organization_id, "organization_id": table.c.project_id}


class SqlProjectGrantStore(SqlEntityStore[ProjectGrant], ProjectGrantStore):
    """One row each; user grants and managers derived from it are deleted by foreign keys."""

    entity_table = ENTITY_TABLE

    def find_for_organization(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        this = (table.c.project_id == project_id, table.c.organization_id == organization_id)
        return self._fetch_value(ENTITY_TABLE.from_row, ENTITY_TABLE.select.where(*this))

    def page(
        self, filter_field: ProjectGrantFilterField, filter_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[ProjectGrant]:
        statement = ENTITY_TABLE.select.where(table.c[filter_field] == filter_id)
        return self._page_newest_first(ENTITY_TABLE, statement, request, search_column=_OTHER_FIELD[filter_field])

    def list_ending(
        self, after: datetime | None, until: datetime, limit: int, *, organization_id: str | None = None
    ) -> tuple[ProjectGrant, ...]:
        if organization_id is None:
            return self._list_ending(after, until, limit)
        in_projects = select(projects.c.id).where(projects.c.organization_id == organization_id)
        scopes = table.c.organization_id == organization_id, table.c.project_id.in_(in_projects)
        return self._list_ending(after, until, limit, *scopes)
