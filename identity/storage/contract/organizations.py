"""Contract of the organization store."""

from dataclasses import replace
from functools import partial

import pytest

from identity.domain.domains import DomainProof, OrganizationDomain
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.contract.page_checks import check_query
from identity.storage.errors import DuplicateValue, RowNotFound
from identity.storage.paging import PageRequest


class OrganizationContract(ContractBase):
    """Organizations are found by id and domain, listed by name, and deleted with everything they own."""

    def test_organizations_find_by_domain(self, on: StorageHarness) -> None:
        organization = on.organization
        on.store(make.organization())
        assert on.read.organizations.find_by_domain(organization.primary_domain) == organization
        assert on.read.organizations.find_by_domain("nobody.example") is None
        moved = replace(organization, primary_domain="moved.example", version=2)
        on.write.organizations.update(moved)
        assert on.read.organizations.find_by_domain("moved.example") == moved
        assert on.read.organizations.find_by_domain(organization.primary_domain) is None

    def test_organizations_rules_version_moves_and_comes_with_each_subject(self, on: StorageHarness) -> None:
        assert on.read.organizations.get_rules_version() is None, "there is no instance whose it is"
        on.store_value(make.instance())
        before = on.read.organizations.get_rules_version()
        on.write.organizations.bump_rules_version()
        after = on.read.organizations.get_rules_version()
        subject = on.read.users.find_subject(on.human_user.id)
        assert subject is not None
        assert subject.rules_version in (None, after)
        assert (before is None) == (after is None)
        assert before is None or before != after

    def test_organizations_update_to_a_taken_domain_is_refused(self, on: StorageHarness) -> None:
        with pytest.raises(DuplicateValue) as refusal:
            on.write.organizations.update(
                replace(on.organization, primary_domain=on.other_organization.primary_domain, version=2)
            )
        assert refusal.value.field == "primary_domain"

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("ac", {"Acme", "ACME II", "\\back"}),
            ("ACME", {"Acme", "ACME II"}),
            ("cme", {"Acme", "ACME II"}),
            ("ii acme", {"ACME II"}),
            ("cne", set()),
            ("0.test", {"Acme"}),
            ("STRASS", {"Straße"}),
            ("fi", {"ﬁne"}),
            ("%", {"%percent"}),
            ("_", {"_under"}),
            ("\\", {"\\back"}),
            ("'", {"'quote"}),
            ("株", {"株式会社"}),
        ],
    )
    def test_organizations_page_by_any_part_of_the_name(self, on: StorageHarness, query: str, names: set[str]) -> None:
        everyone = ("Acme", "ACME II", "Bolt", "Straße", "ﬁne", "%percent", "_under", "\\back", "'quote", "株式会社")
        rows = [make.organization(name=name, primary_domain=f"{n}.test") for n, name in enumerate(everyone)]
        on.store(*rows)
        check_query(on.read.organizations.page, query, [row for row in rows if row.name in names])

    def test_organizations_page_by_start_and_state_together(self, on: StorageHarness) -> None:
        organization = make.organization(name="Acme")
        on.store(organization, make.organization(name="Acme", active=False), make.organization(name="Bolt"))
        page = on.read.organizations.page(PageRequest(limit=10, query="acm", active=True))
        assert page.items == (organization,)


class DomainContract(ContractBase):
    """Many organizations may wait for a domain, one can have it, and keeps it."""

    @pytest.fixture
    def waiting(self, on: StorageHarness) -> OrganizationDomain:
        return on.store_value(make.organization_domain(on.organization))

    def test_domains_come_back_as_they_were_added(self, on: StorageHarness, waiting: OrganizationDomain) -> None:
        counting = on.store_value(make.organization_domain(proof=DomainProof.DNS, verified_at=NOW))
        assert on.read.organizations.find_domain(waiting.organization_id, waiting.name) == waiting
        assert on.read.organizations.find_effective_domain(waiting.name) is None
        assert on.read.organizations.find_domain(counting.organization_id, counting.name) == counting
        assert on.read.organizations.find_effective_domain(counting.name) == counting
        assert on.read.organizations.find_domain(make_id(), waiting.name) is None
        assert on.read.organizations.find_domain(waiting.organization_id, counting.name) is None

    def test_domains_of_organization_are_by_name(self, on: StorageHarness) -> None:
        mine = [make.organization_domain(on.organization, name=f"{letter}.example") for letter in "bac"]
        on.store(*mine, make.organization_domain(on.other_organization))
        domains = on.read.organizations.list_domains(on.organization.id)
        assert [domain.name for domain in domains] == ["a.example", "b.example", "c.example"]
        assert on.read.organizations.list_domains(make_id()) == ()

    def test_domains_many_wait_for_one_name_and_one_of_them_counts(
        self, on: StorageHarness, waiting: OrganizationDomain
    ) -> None:
        also, later = make.organization_domain(name=waiting.name), make.organization_domain(on.other_organization)
        domain = make.organization_domain(
            on.other_organization, name=waiting.name, proof=DomainProof.DNS, verified_at=NOW
        )
        on.store(also, domain)
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue) as refusal:
                storage.organizations.prove_domain(replace(waiting, proof=DomainProof.FILE, verified_at=NOW))
            storage.organizations.add_domain(later)
        assert refusal.value.field == "domain"
        assert on.read.organizations.find_effective_domain(waiting.name) == domain
        assert on.unchanged(waiting, also, later) == [waiting, also, later]

    def test_domains_prove_keeps_proof_and_moment_alone(self, on: StorageHarness, waiting: OrganizationDomain) -> None:
        proven = replace(waiting, proof=DomainProof.UNPROVEN, verified_at=NOW)
        for proof in (DomainProof.UNPROVEN, DomainProof.DNS):
            proven = replace(waiting, proof=proof, verified_at=NOW)
            on.write.organizations.prove_domain(proven)
            assert on.read.organizations.find_effective_domain(waiting.name) == proven

    def test_domains_prove_needs_the_challenge_that_was_answered(
        self, on: StorageHarness, waiting: OrganizationDomain
    ) -> None:
        for wrong in (
            replace(waiting, challenge="former"),
            replace(waiting, name="other.example"),
            replace(waiting, organization_id=make_id()),
        ):
            with pytest.raises(RowNotFound):
                on.write.organizations.prove_domain(replace(wrong, proof=DomainProof.DNS, verified_at=NOW))
        assert on.read.organizations.find_domain(waiting.organization_id, waiting.name) == waiting

    def test_domains_of_racing_proofs_one_wins(self, on: StorageHarness) -> None:
        rivals = [make.organization_domain(name="rivals.example") for _ in range(12)]
        on.store(*rivals)
        outcomes = on.race(partial(_prove, rivals), len(rivals))
        assert len(outcomes.committed) == 1
        assert outcomes.errors == {"DuplicateValue": len(rivals) - 1}
        holder = require_found(on.read.organizations.find_effective_domain("rivals.example"))
        assert holder.organization_id == rivals[outcomes.committed[0].number].organization_id

    def test_domains_remove(self, on: StorageHarness, waiting: OrganizationDomain) -> None:
        on.write.organizations.delete_domain(waiting.organization_id, waiting.name)
        assert on.read.organizations.find_domain(waiting.organization_id, waiting.name) is None
        with pytest.raises(RowNotFound):
            on.write.organizations.delete_domain(waiting.organization_id, waiting.name)

    def test_domains_unproven_are_those_that_count_outside_of_the_name_space(
        self, on: StorageHarness, waiting: OrganizationDomain
    ) -> None:
        proofs = {
            "b.example": DomainProof.UNPROVEN,
            "a.example": DomainProof.UNPROVEN,
            "c.example": DomainProof.DNS,
            "acme.id.example.com": DomainProof.UNPROVEN,
            "notid.example.com": DomainProof.UNPROVEN,
        }
        on.store(*(make.organization_domain(name=name, proof=proof, verified_at=NOW) for name, proof in proofs.items()))
        domains = on.read.organizations.list_unproven_domains("id.example.com", 9)
        assert [domain.name for domain in domains] == ["a.example", "b.example", "notid.example.com"]
        assert [domain.name for domain in on.read.organizations.list_unproven_domains("id.example.com", 1)] == [
            "a.example"
        ]


def _prove(rivals: list[OrganizationDomain], storage: Storage, number: int) -> None:
    storage.organizations.prove_domain(replace(rivals[number], proof=DomainProof.DNS, verified_at=NOW))
