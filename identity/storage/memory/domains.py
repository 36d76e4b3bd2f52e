"""Domains of organizations, in memory."""

from collections.abc import Iterable
from dataclasses import replace

from identity.domain.domains import OrganizationDomain, Proof
from identity.storage.errors import Missing
from identity.storage.memory.entities import MemoryStore
from identity.storage.stores.domains import DomainStore


class MemoryDomainStore(MemoryStore, DomainStore):
    """Rows by organization and name."""

    def add(self, domain: OrganizationDomain) -> None:
        self._tables.domains.insert({(domain.organization_id, domain.name): domain})

    def find(self, organization_id: str, name: str) -> OrganizationDomain | None:
        return self._tables.domains.find((organization_id, name))

    def find_holder(self, name: str) -> OrganizationDomain | None:
        return next((each for each in self._tables.domains if each.name == name and each.counts), None)

    def of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        return _by_name(each for each in self._tables.domains if each.organization_id == organization_id)

    def lock_of_organization(self, organization_id: str) -> tuple[OrganizationDomain, ...]:
        # A writer has the whole storage for itself, so there is nothing more to lock.
        return self.of_organization(organization_id)

    def unproven(self, name_space: str, limit: int) -> tuple[OrganizationDomain, ...]:
        found = (each for each in self._tables.domains if each.proof is Proof.UNPROVEN)
        return _by_name(each for each in found if not each.name.endswith(f".{name_space}"))[:limit]

    def prove(self, domain: OrganizationDomain) -> None:
        stored = self.find(domain.organization_id, domain.name)
        if stored is None or stored.challenge != domain.challenge:
            raise Missing
        proven = replace(stored, proof=domain.proof, verified_at=domain.verified_at)
        self._tables.domains.replace((domain.organization_id, domain.name), proven)

    def remove(self, organization_id: str, name: str) -> None:
        self._tables.domains.delete((organization_id, name))


def _by_name(domains: Iterable[OrganizationDomain]) -> tuple[OrganizationDomain, ...]:
    return tuple(sorted(domains, key=lambda each: (each.name, each.organization_id)))
