"""Organizations, in memory."""

from identity.domain.organizations import Organization
from identity.domain.search import is_found
from identity.storage.memory.entities import MemoryEntityStore
from identity.storage.paging import FIRST_PAGE, Page, PageRequest, page_sorted
from identity.storage.stores.organizations import ORDERS, OrganizationStore


class MemoryOrganizationStore(MemoryEntityStore[Organization], OrganizationStore):
    """Rows by id."""

    table = "organizations"

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        return next((each for each in self._tables.organizations if each.primary_domain == primary_domain), None)

    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        rows = (each for each in self._tables.organizations if is_found(request.query, each))
        return page_sorted(rows, request, ORDERS)
