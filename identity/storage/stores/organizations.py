"""Organizations."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.storage.paging import FIRST_PAGE, Orders, Page, PageRequest, in_order

#: What the list can be sorted by, the usual order first.
ORDERS: Orders[Organization] = {
    "name": lambda each: name_key(each.name),
    "primary_domain": lambda each: each.primary_domain,
    "created_at": lambda each: in_order(each.created_at),
}


class OrganizationStore(ABC):
    """Unique: ``primary_domain`` (Duplicate("primary_domain"))."""

    @abstractmethod
    def add(self, organization: Organization) -> None:
        """Store a new organization."""

    @abstractmethod
    def find(self, organization_id: str) -> Organization | None:
        """The organization with this id."""

    @abstractmethod
    def find_many(self, ids: Collection[str]) -> Mapping[str, Organization]:
        """The organizations with these ids, by id and in one query; unknown ids are left out."""

    @abstractmethod
    def find_by_domain(self, primary_domain: str) -> Organization | None:
        """The organization with this primary domain."""

    @abstractmethod
    def update(self, organization: Organization) -> None:
        """Replace the stored value."""

    @abstractmethod
    def remove(self, organization_id: str) -> None:
        """Delete it with its users, projects, grants held, managers, keys, tokens and the domains that it waits for."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE) -> Page[Organization]:
        """Organizations, usually by name."""
