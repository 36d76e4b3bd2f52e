"""Organizations."""

from abc import abstractmethod

from identity.domain.domains import OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, SortKeys, sortable_timestamp
from identity.storage.stores.entity_store import EntityStore

#: What the list can be sorted by, the usual order first.
ORGANIZATION_SORT_KEYS: SortKeys[Organization] = {
    "name": lambda organization: name_key(organization.name),
    "primary_domain": lambda organization: organization.primary_domain,
    "created_at": lambda organization: sortable_timestamp(organization.created_at),
}


class OrganizationStore(EntityStore[Organization]):
    """Unique: ``primary_domain`` (DuplicateValue("primary_domain")); a domain of one organization, and its name among
    those that count (both DuplicateValue("domain")).

    Many organizations may wait for one domain. One that counts outlives its organization. One of the organizations is
    the instance's own.
    """

    @abstractmethod
    def find_by_domain(self, primary_domain: str) -> Organization | None:
        """The organization with this primary domain."""

    @abstractmethod
    def page(self, request: PageRequest = FIRST_PAGE) -> ResultPage[Organization]:
        """Organizations, usually by name."""

    @abstractmethod
    def add_domain(self, domain: OrganizationDomain) -> None:
        """Store a new domain, waiting or counting."""

    @abstractmethod
    def find_domain(self, organization_id: str, name: str) -> OrganizationDomain | None:
        """The organization's domain of this name."""

    @abstractmethod
    def find_effective_domain(self, name: str) -> OrganizationDomain | None:
        """The one domain of this name that counts."""

    @abstractmethod
    def list_domains(self, organization_id: str, *, locked: bool = False) -> tuple[OrganizationDomain, ...]:
        """All of the organization, by name.

        ``locked`` so that they can be counted: whoever else locks them waits for the end of the transaction.
        """

    @abstractmethod
    def list_unproven_domains(self, reserved: str, limit: int) -> tuple[OrganizationDomain, ...]:
        """Up to ``limit`` that count without ever having been proven and do not lie below ``reserved``, by name."""

    @abstractmethod
    def prove_domain(self, domain: OrganizationDomain) -> None:
        """Keep proof and moment, by one conditional write. Raises RowNotFound unless the stored challenge is the
        same."""

    @abstractmethod
    def delete_domain(self, organization_id: str, name: str) -> None:
        """Delete it: it is free for others. Raises RowNotFound."""

    @abstractmethod
    def find_instance(self) -> Instance | None:
        """The instance, or None before bootstrap."""

    def get_rules_version(self) -> int | None:
        """A number that is another one after each change of rules; None where none is kept.

        A backend that keeps one tells it with each Subject, too: then what follows from the rules is kept in a process
        until the number moves, and read each time otherwise.
        """
        return None

    def bump_rules_version(self) -> None:
        """Have it be another number from this transaction's commit on, if there is an instance. Nobody is refused for
        moving it at the same time."""

    @abstractmethod
    def add_instance(self, instance: Instance) -> None:
        """Store it. Raises DuplicateValue("instance") if there is one: of two racing bootstraps one wins."""
