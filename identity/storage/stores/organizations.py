"""Organizations."""

from abc import abstractmethod

from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

#: Sort keys of the list, the default first.
ORGANIZATION_SORT_KEYS: SortKeys[Organization] = {
    "name": lambda organization: name_key(organization.name),
    "primary_domain": lambda organization: organization.primary_domain,
    "created_at": lambda organization: sortable_timestamp(organization.created_at),
}


class OrganizationStore(EntityStore[Organization]):
    """Unique: ``primary_domain`` (DuplicateValue("primary_domain")); a domain of one organization, and its name among
    verified ones (both DuplicateValue("domain")). Many organizations may wait for one domain. A verified one outlives
    its organization. One of the organizations is the instance's own."""

    @abstractmethod
    def find_by_domain(self, primary_domain: str) -> Organization | None:
        """The organization with this primary domain."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE) -> ResultPage[Organization]:
        """Organizations, by name by default."""

    @abstractmethod
    def add_domain(self, domain: OrganizationDomain) -> None:
        """Add a domain, pending or in effect."""

    @abstractmethod
    def find_domain(self, organization_id: str, name: str) -> OrganizationDomain | None:
        """The organization's domain of this name."""

    @abstractmethod
    def find_effective_domain(self, name: str) -> OrganizationDomain | None:
        """The one domain of this name that is in effect."""

    @abstractmethod
    def list_domains(self, organization_id: str, *, locked: bool = False) -> tuple[OrganizationDomain, ...]:
        """All domains of the organization, by name. ``locked`` makes their count reliable: others that lock them wait
        for the end of the transaction."""

    @abstractmethod
    def list_unproven_domains(self, reserved: str, limit: int) -> tuple[OrganizationDomain, ...]:
        """Up to ``limit`` domains in effect that were never verified and are not below ``reserved``, by name."""

    @abstractmethod
    def prove_domain(self, domain: OrganizationDomain) -> None:
        """Store proof and time, by one conditional write. Raises RowNotFound unless the stored challenge is the
        same."""

    @abstractmethod
    def delete_domain(self, organization_id: str, name: str) -> None:
        """Delete the domain, which becomes available to others. Raises RowNotFound."""

    @abstractmethod
    def find_instance(self) -> Instance | None:
        """The instance; None before bootstrap."""

    def get_rules_version(self) -> int | None:
        """A number that changes with each change of a policy; None if the backend keeps none. A backend that keeps it
        also returns it with each Subject: then processes cache policies until the number changes; otherwise they read
        them each time."""
        return None

    def bump_rules_version(self) -> None:
        """Change the number at this transaction's commit, if there is an instance. Concurrent calls do not conflict."""

    @abstractmethod
    def add_instance(self, instance: Instance) -> None:
        """Raises DuplicateValue("instance") if there is one: one of two racing bootstraps succeeds."""
