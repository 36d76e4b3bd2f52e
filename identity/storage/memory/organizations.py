"""Organizations, in memory."""

from collections.abc import Collection, Mapping

from identity.domain.organizations import Organization
from identity.domain.search import is_found
from identity.storage.memory.cascades import remove_organization
from identity.storage.memory.tables import Tables, require_free, update
from identity.storage.paging import FIRST_PAGE, Page, PageRequest, page_sorted
from identity.storage.stores.organizations import ORDERS, OrganizationStore


class MemoryOrganizationStore(OrganizationStore):
    """Rows by id."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, organization: Organization) -> None:
        self._require_free_domain(organization)
        self._tables.organizations.insert(organization.id, organization)

    def find(self, organization_id: str) -> Organization | None:
        return self._tables.organizations.find(organization_id)

    def find_many(self, ids: Collection[str]) -> Mapping[str, Organization]:
        return self._tables.organizations.find_many(ids)

    def find_by_domain(self, primary_domain: str) -> Organization | None:
        return next((each for each in self._tables.organizations if each.primary_domain == primary_domain), None)

    def update(self, organization: Organization) -> None:
        self._require_free_domain(organization)
        update(self._tables.organizations, organization)

    def remove(self, organization_id: str) -> None:
        remove_organization(self._tables, organization_id)

    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        rows = (each for each in self._tables.organizations if is_found(request.query, each))
        return page_sorted(rows, request, ORDERS)

    def _require_free_domain(self, organization: Organization) -> None:
        require_free(
            (
                other
                for other in self._tables.organizations
                if other.primary_domain == organization.primary_domain and other.id != organization.id
            ),
            "primary_domain",
        )
