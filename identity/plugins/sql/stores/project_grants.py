"""Project grants in SQL."""

from sqlalchemy import bindparam

from identity.domain.projects import ProjectGrant
from identity.plugins.sql.entity_store import EntityTable, SqlEntityStore
from identity.plugins.sql.tables import project_grants as table
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage
from identity.storage.stores.project_grants import ProjectGrantFilterField, ProjectGrantStore

ENTITY_TABLE = EntityTable[ProjectGrant](table)

_FIND_FOR_ORGANIZATION = ENTITY_TABLE.select.where(
    table.c.project_id == bindparam("project"), table.c.organization_id == bindparam("organization")
)
#: The column that a search looks at.
_OTHER_FIELD = {"project_id": table.c.organization_id, "organization_id": table.c.project_id}


class SqlProjectGrantStore(SqlEntityStore[ProjectGrant], ProjectGrantStore):
    """One row each; user grants and managers derived from it are deleted by foreign keys."""

    entity_table = ENTITY_TABLE

    def find_for_organization(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        return self._fetch_value(
            ENTITY_TABLE.from_row, _FIND_FOR_ORGANIZATION, {"project": project_id, "organization": organization_id}
        )

    def page(
        self, filter_field: ProjectGrantFilterField, filter_id: str, request: PageRequest = FIRST_PAGE
    ) -> ResultPage[ProjectGrant]:
        statement = ENTITY_TABLE.select.where(table.c[filter_field] == filter_id)
        return self._page_newest_first(ENTITY_TABLE, statement, request, search_column=_OTHER_FIELD[filter_field])
