"""Domains of organizations."""

from abc import ABC, abstractmethod

from identity.domain.domains import OrganizationDomain


class DomainStore(ABC):
    """Unique: organization and name; and the name among those that count (both Duplicate("domain")).

    Many organizations may wait for one name. Rows that count outlive their organization.
    """

    @abstractmethod
    def add(self, domain: OrganizationDomain) -> None:
        """Store a new domain, waiting or counting."""

    @abstractmethod
    def find(self, organization_id: str, name: str) -> OrganizationDomain | None:
        """The organization's domain of this name."""

    @abstractmethod
    def find_holder(self, name: str) -> OrganizationDomain | None:
        """The one domain of this name that counts."""

    @abstractmethod
    def of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        """All of the organization, by name."""

    @abstractmethod
    def lock_of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        """The same, so that they can be counted: whoever else locks them waits for the end of the transaction."""

    @abstractmethod
    def unproven(self, name_space: str, limit: int) -> tuple[OrganizationDomain, ...]:
        """Up to ``limit`` that count without ever having been proven and do not lie below ``name_space``, by name."""

    @abstractmethod
    def prove(self, domain: OrganizationDomain) -> None:
        """Keep proof and moment, by one conditional write. Raises Missing unless the stored challenge is the same."""

    @abstractmethod
    def remove(self, organization_id: str, name: str) -> None:
        """Delete it: it is free for others. Raises Missing."""
