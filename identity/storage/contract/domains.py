"""What is demanded of the domain store."""

from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from identity.domain.domains import OrganizationDomain, Proof
from identity.domain.organizations import Organization
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import NOW, a_domain, an_id
from identity.storage.contract.racing import Race
from identity.storage.errors import Duplicate, Missing


class DomainContract(ContractBase):
    """Many wait for a name, one has it; who has it keeps it."""

    @pytest.fixture
    def waiting(self, save: Save, organization: Organization) -> OrganizationDomain:
        """A stored domain that ``organization`` waits for."""
        domain = a_domain(organization)
        save(domain)
        return domain

    def test_domains_come_back_as_they_were_added(
        self, save: Save, reading: Reading, waiting: OrganizationDomain, now: datetime
    ) -> None:
        counting = a_domain(proof=Proof.DNS, verified_at=now)
        save(counting)
        with reading() as storage:
            assert storage.domains.find(waiting.organization_id, waiting.name) == waiting
            assert storage.domains.find_holder(waiting.name) is None
            assert storage.domains.find(counting.organization_id, counting.name) == counting
            assert storage.domains.find_holder(counting.name) == counting
            assert storage.domains.find(an_id(), waiting.name) is None
            assert storage.domains.find(waiting.organization_id, counting.name) is None

    def test_domains_of_organization_are_by_name(
        self, save: Save, reading: Reading, organization: Organization, other_organization: Organization
    ) -> None:
        mine = [a_domain(organization, name=f"{letter}.example") for letter in "bac"]
        save(*mine, a_domain(other_organization))
        with reading() as storage:
            found = storage.domains.of_organization(organization.id)
            assert [one.name for one in found] == ["a.example", "b.example", "c.example"]
            assert storage.domains.of_organization(an_id()) == ()

    def test_domains_many_wait_for_one_name_and_each_once(
        self, save: Save, in_transaction: InTransaction, waiting: OrganizationDomain, other_organization: Organization
    ) -> None:
        save(a_domain(other_organization, name=waiting.name))
        with pytest.raises(Duplicate) as refusal, in_transaction() as storage:
            storage.domains.add(replace(waiting, challenge="another"))
        assert refusal.value.field == "domain"

    def test_domains_one_of_each_name_counts(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        waiting: OrganizationDomain,
        other_organization: Organization,
        now: datetime,
    ) -> None:
        taken = a_domain(other_organization, name=waiting.name, proof=Proof.DNS, verified_at=now)
        later = a_domain(other_organization)
        save(taken)
        with in_transaction() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.domains.prove(replace(waiting, proof=Proof.FILE, verified_at=now))
            assert refusal.value.field == "domain"
            with pytest.raises(Duplicate) as refusal:
                storage.domains.add(a_domain(name=waiting.name, proof=Proof.FILE, verified_at=now))
            assert refusal.value.field == "domain"
            storage.domains.add(later)
        with reading() as storage:
            assert storage.domains.find_holder(waiting.name) == taken
            assert storage.domains.find(waiting.organization_id, waiting.name) == waiting
            assert storage.domains.find(later.organization_id, later.name) == later

    def test_domains_prove_keeps_proof_and_moment_alone(
        self, in_transaction: InTransaction, reading: Reading, waiting: OrganizationDomain, now: datetime
    ) -> None:
        proven = replace(waiting, proof=Proof.UNPROVEN, verified_at=now)
        for proof in (Proof.UNPROVEN, Proof.DNS):
            proven = replace(waiting, proof=proof, verified_at=now)
            with in_transaction() as storage:
                storage.domains.prove(proven)
            with reading() as storage:
                assert storage.domains.find_holder(waiting.name) == proven

    def test_domains_prove_needs_the_challenge_that_was_answered(
        self, in_transaction: InTransaction, reading: Reading, waiting: OrganizationDomain, now: datetime
    ) -> None:
        for wrong in (
            replace(waiting, challenge="former"),
            replace(waiting, name="other.example"),
            replace(waiting, organization_id=an_id()),
        ):
            with pytest.raises(Missing), in_transaction() as storage:
                storage.domains.prove(replace(wrong, proof=Proof.DNS, verified_at=now))
        with reading() as storage:
            assert storage.domains.find(waiting.organization_id, waiting.name) == waiting

    def test_domains_of_racing_proofs_one_wins(self, save: Save, reading: Reading, race: Race, now: datetime) -> None:
        rivals = [a_domain(name="rivals.example") for _ in range(12)]
        save(*rivals)
        outcomes = race(partial(_prove, rivals), len(rivals))
        assert len(outcomes.won) == 1
        assert outcomes.errors == {"Duplicate": len(rivals) - 1}
        with reading() as storage:
            holder = storage.domains.find_holder("rivals.example")
        assert holder is not None
        assert holder.organization_id == rivals[outcomes.won[0].number].organization_id

    def test_domains_remove(self, in_transaction: InTransaction, reading: Reading, waiting: OrganizationDomain) -> None:
        with in_transaction() as storage:
            storage.domains.remove(waiting.organization_id, waiting.name)
        with reading() as storage:
            assert storage.domains.find(waiting.organization_id, waiting.name) is None
        with pytest.raises(Missing), in_transaction() as storage:
            storage.domains.remove(waiting.organization_id, waiting.name)

    def test_domains_that_count_outlive_their_organization(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        organization: Organization,
        other_organization: Organization,
        waiting: OrganizationDomain,
        now: datetime,
    ) -> None:
        kept = a_domain(organization, proof=Proof.ASSERTED, verified_at=now)
        foreign = a_domain(other_organization)
        save(kept, foreign)
        with in_transaction() as storage:
            storage.organizations.remove(organization.id)
        with reading() as storage:
            assert storage.domains.of_organization(organization.id) == (kept,)
            assert storage.domains.find_holder(kept.name) == kept
            assert storage.domains.find(foreign.organization_id, foreign.name) == foreign

    def test_domains_unproven_are_those_that_count_outside_of_the_name_space(
        self, save: Save, reading: Reading, waiting: OrganizationDomain, now: datetime
    ) -> None:
        proofs = {
            "b.example": Proof.UNPROVEN,
            "a.example": Proof.UNPROVEN,
            "c.example": Proof.DNS,
            "acme.id.example.com": Proof.UNPROVEN,
            "notid.example.com": Proof.UNPROVEN,
        }
        save(*(a_domain(name=name, proof=proof, verified_at=now) for name, proof in proofs.items()))
        with reading() as storage:
            found = storage.domains.unproven("id.example.com", 9)
            assert [one.name for one in found] == ["a.example", "b.example", "notid.example.com"]
            assert [one.name for one in storage.domains.unproven("id.example.com", 1)] == ["a.example"]


def _prove(rivals: list[OrganizationDomain], storage: Storage, number: int) -> None:
    storage.domains.prove(replace(rivals[number], proof=Proof.DNS, verified_at=NOW))
