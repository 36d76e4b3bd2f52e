"""What is demanded of the domain store."""

from dataclasses import replace
from functools import partial

import pytest

from identity.domain.domains import OrganizationDomain, Proof
from identity.storage.backend import Storage
from identity.storage.contract.base import ContractBase, On, there
from identity.storage.contract.factories import NOW, a_domain, an_id
from identity.storage.errors import Duplicate, Missing


class DomainContract(ContractBase):
    """Many wait for a name, one has it; who has it keeps it."""

    @pytest.fixture
    def waiting(self, on: On) -> OrganizationDomain:
        """A stored domain that ``organization`` waits for."""
        return on.saved(a_domain(on.organization))

    def test_domains_come_back_as_they_were_added(self, on: On, waiting: OrganizationDomain) -> None:
        counting = on.saved(a_domain(proof=Proof.DNS, verified_at=NOW))
        assert on.read.organizations.find_domain(waiting.organization_id, waiting.name) == waiting
        assert on.read.organizations.find_domain_holder(waiting.name) is None
        assert on.read.organizations.find_domain(counting.organization_id, counting.name) == counting
        assert on.read.organizations.find_domain_holder(counting.name) == counting
        assert on.read.organizations.find_domain(an_id(), waiting.name) is None
        assert on.read.organizations.find_domain(waiting.organization_id, counting.name) is None

    def test_domains_of_organization_are_by_name(self, on: On) -> None:
        mine = [a_domain(on.organization, name=f"{letter}.example") for letter in "bac"]
        on.save(*mine, a_domain(on.other_organization))
        found = on.read.organizations.domains(on.organization.id)
        assert [one.name for one in found] == ["a.example", "b.example", "c.example"]
        assert on.read.organizations.domains(an_id()) == ()

    def test_domains_many_wait_for_one_name_and_one_of_them_counts(self, on: On, waiting: OrganizationDomain) -> None:
        also, later = a_domain(name=waiting.name), a_domain(on.other_organization)
        taken = a_domain(on.other_organization, name=waiting.name, proof=Proof.DNS, verified_at=NOW)
        on.save(also, taken)
        with on.writing() as storage:
            with pytest.raises(Duplicate) as refusal:
                storage.organizations.prove_domain(replace(waiting, proof=Proof.FILE, verified_at=NOW))
            storage.organizations.add_domain(later)
        assert refusal.value.field == "domain"
        assert on.read.organizations.find_domain_holder(waiting.name) == taken
        assert on.left(waiting, also, later) == [waiting, also, later]

    def test_domains_prove_keeps_proof_and_moment_alone(self, on: On, waiting: OrganizationDomain) -> None:
        proven = replace(waiting, proof=Proof.UNPROVEN, verified_at=NOW)
        for proof in (Proof.UNPROVEN, Proof.DNS):
            proven = replace(waiting, proof=proof, verified_at=NOW)
            on.write.organizations.prove_domain(proven)
            assert on.read.organizations.find_domain_holder(waiting.name) == proven

    def test_domains_prove_needs_the_challenge_that_was_answered(self, on: On, waiting: OrganizationDomain) -> None:
        for wrong in (
            replace(waiting, challenge="former"),
            replace(waiting, name="other.example"),
            replace(waiting, organization_id=an_id()),
        ):
            with pytest.raises(Missing):
                on.write.organizations.prove_domain(replace(wrong, proof=Proof.DNS, verified_at=NOW))
        assert on.read.organizations.find_domain(waiting.organization_id, waiting.name) == waiting

    def test_domains_of_racing_proofs_one_wins(self, on: On) -> None:
        rivals = [a_domain(name="rivals.example") for _ in range(12)]
        on.save(*rivals)
        outcomes = on.race(partial(_prove, rivals), len(rivals))
        assert len(outcomes.won) == 1
        assert outcomes.errors == {"Duplicate": len(rivals) - 1}
        holder = there(on.read.organizations.find_domain_holder("rivals.example"))
        assert holder.organization_id == rivals[outcomes.won[0].number].organization_id

    def test_domains_remove(self, on: On, waiting: OrganizationDomain) -> None:
        on.write.organizations.remove_domain(waiting.organization_id, waiting.name)
        assert on.read.organizations.find_domain(waiting.organization_id, waiting.name) is None
        with pytest.raises(Missing):
            on.write.organizations.remove_domain(waiting.organization_id, waiting.name)

    def test_domains_unproven_are_those_that_count_outside_of_the_name_space(
        self, on: On, waiting: OrganizationDomain
    ) -> None:
        proofs = {
            "b.example": Proof.UNPROVEN,
            "a.example": Proof.UNPROVEN,
            "c.example": Proof.DNS,
            "acme.id.example.com": Proof.UNPROVEN,
            "notid.example.com": Proof.UNPROVEN,
        }
        on.save(*(a_domain(name=name, proof=proof, verified_at=NOW) for name, proof in proofs.items()))
        found = on.read.organizations.unproven_domains("id.example.com", 9)
        assert [one.name for one in found] == ["a.example", "b.example", "notid.example.com"]
        assert [one.name for one in on.read.organizations.unproven_domains("id.example.com", 1)] == ["a.example"]


def _prove(rivals: list[OrganizationDomain], storage: Storage, number: int) -> None:
    storage.organizations.prove_domain(replace(rivals[number], proof=Proof.DNS, verified_at=NOW))
