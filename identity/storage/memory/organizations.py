"""Organizations, in memory."""

from collections.abc import Iterable
from dataclasses import replace

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.storage.errors import RowNotFound
from identity.storage.memory.entity_store import MemoryEntityStore
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage, search_in_memory
from identity.storage.stores.organizations import ORGANIZATION_SORT_KEYS, OrganizationStore


class MemoryOrganizationStore(MemoryEntityStore[Organization], OrganizationStore):
    def find_by_domain(self, primary_domain: str) -> Organization | None:
        return next((row for row in self._rows if row.primary_domain == primary_domain), None)

    def page(self, request: PageRequest = FIRST_PAGE) -> ResultPage[Organization]:
        return search_in_memory(self._rows, request, ORGANIZATION_SORT_KEYS)

    def add_domain(self, domain: OrganizationDomain) -> None:
        self._tables.domains.insert({(domain.organization_id, domain.name): domain})

    def find_domain(self, organization_id: str, name: str) -> OrganizationDomain | None:
        return self._tables.domains.find((organization_id, name))

    def find_effective_domain(self, name: str) -> OrganizationDomain | None:
        return next((domain for domain in self._tables.domains if domain.name == name and domain.is_effective), None)

    def list_domains(self, organization_id: str, *, locked: bool = False) -> tuple[OrganizationDomain, ...]:
        # Writers are exclusive, so no further lock is needed.
        return _sort_by_name(domain for domain in self._tables.domains if domain.organization_id == organization_id)

    def list_unproven_domains(self, reserved: str, limit: int) -> tuple[OrganizationDomain, ...]:
        domains = (domain for domain in self._tables.domains if domain.proof is DomainProof.UNPROVEN)
        return _sort_by_name(domain for domain in domains if not domain.name.endswith(f".{reserved}"))[:limit]

    def prove_domain(self, domain: OrganizationDomain) -> None:
        stored = self.find_domain(domain.organization_id, domain.name)
        if stored is None or stored.challenge != domain.challenge:
            raise RowNotFound
        proven = replace(stored, proof=domain.proof, verified_at=domain.verified_at)
        self._tables.domains.replace((domain.organization_id, domain.name), proven)

    def delete_domain(self, organization_id: str, name: str) -> None:
        self._tables.domains.delete((organization_id, name))

    def find_instance(self) -> Instance | None:
        return self._tables.instance.find("instance")

    def add_instance(self, instance: Instance) -> None:
        self._tables.instance.insert({"instance": instance})


def _sort_by_name(domains: Iterable[OrganizationDomain]) -> tuple[OrganizationDomain, ...]:
    return tuple(sorted(domains, key=lambda domain: (domain.name, domain.organization_id)))
