"""Project grants in SQL."""

from sqlalchemy import bindparam

from identity.domain.projects import ProjectGrant
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.tables import project_grants as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.project_grants import ProjectGrantStore

ROWS = Entities[ProjectGrant](table)

_PAGE = ROWS.select.where(table.c.project_id == bindparam("project"))
_PAGE_HELD = ROWS.select.where(table.c.organization_id == bindparam("organization"))
_FIND_FOR = _PAGE.where(table.c.organization_id == bindparam("organization"))


class SqlProjectGrantStore(SqlEntityStore[ProjectGrant], ProjectGrantStore):
    """One row each; user grants and managers that derive from it go by foreign keys."""

    rows = ROWS

    def find_for(self, project_id: str, organization_id: str) -> ProjectGrant | None:
        return self._find(ROWS.of, _FIND_FOR, {"project": project_id, "organization": organization_id})

    def page(self, project_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        return self._page_newest_first(ROWS, _PAGE.params(project=project_id), request, by=table.c.organization_id)

    def page_held(self, organization_id: str, request: PageRequest = FIRST_PAGE) -> Page[ProjectGrant]:
        held = _PAGE_HELD.params(organization=organization_id)
        return self._page_newest_first(ROWS, held, request, by=table.c.project_id)
