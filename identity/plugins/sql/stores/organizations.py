"""Organizations in SQL."""

from sqlalchemy import bindparam

from identity.domain.organizations import Organization
from identity.plugins.sql.entities import Entities, SqlEntityStore
from identity.plugins.sql.stores.domains import REMOVE_WAITING
from identity.plugins.sql.tables import organizations as table
from identity.storage.paging import FIRST_PAGE, Page, PageRequest
from identity.storage.stores.organizations import OrganizationStore

ROWS = Entities[Organization](table)

_FIND_BY_DOMAIN = ROWS.select.where(table.c.primary_domain == bindparam("domain"))
_ORDERS = {
    "name": table.c.name_key,
    "primary_domain": table.c.primary_domain,
    "created_at": table.c.created_at,
}


class SqlOrganizationStore(SqlEntityStore[Organization], OrganizationStore):
    """One row each; what belongs to it goes by foreign keys."""

    rows = ROWS

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        return self._find(ROWS.of, _FIND_BY_DOMAIN, {"domain": primary_domain})

    def remove(self, id: str) -> None:  # noqa: A002
        super().remove(id)
        self._change(REMOVE_WAITING, {"key": id})

    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        return self._page(ROWS, ROWS.select, request, _ORDERS)
