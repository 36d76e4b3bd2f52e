"""Organizations."""

from abc import abstractmethod

from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.storage.paging import FIRST_PAGE, Orders, Page, PageRequest, in_order
from identity.storage.stores.entity import EntityStore

#: What the list can be sorted by, the usual order first.
ORDERS: Orders[Organization] = {
    "name": lambda each: name_key(each.name),
    "primary_domain": lambda each: each.primary_domain,
    "created_at": lambda each: in_order(each.created_at),
}


class OrganizationStore(EntityStore[Organization]):
    """Unique: ``primary_domain`` (Duplicate("primary_domain"))."""

    @abstractmethod
    def find_by_domain(self, primary_domain: str) -> Organization | None:
        """The organization with this primary domain."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        """Organizations, usually by name."""
