"""Project grants in SQL."""

from sqlalchemy import bindparam

from identity.domain.projects import ProjectGrant
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.tables import project_grants as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.project_grants import LentBy, ProjectGrantStore

ROWS = Entities[ProjectGrant](table)

_FIND_FOR = ROWS.select.where(
    table.c.project_id == bindparam("project"), table.c.organization_id == bindparam("organization")
)
#: What a search looks at.
_OTHER_END = {"project_id": table.c.organization_id, "organization_id": table.c.project_id}


class SqlProjectGrantStore(SqlEntityStore[ProjectGrant], ProjectGrantStore):
    """One row each; user grants and managers that derive from it go by foreign keys."""

    rows = ROWS

    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        return self._find(ROWS.of, _FIND_FOR, {"project": project_id, "organization": organization_id})

    def page(self, by: LentBy, of: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        statement = ROWS.select.where(table.c[by] == of)
        return self._page_newest_first(ROWS, statement, request, by=_OTHER_END[by])
