"""Contract of the organization store."""

from dataclasses import replace

import pytest

from identity.storage.contract.factories import make_instance, make_organization
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.page_checks import check_query
from identity.storage.errors import DuplicateValue
from identity.storage.paging import PageRequest


class OrganizationContract(ContractBase):
    """Organizations are found by id and domain, listed by name, and deleted with everything they own."""

    def test_organizations_find_by_domain(self, on: StorageHarness) -> None:
        organization = on.organization
        on.store(make_organization())
        assert on.read.organizations.find_by_domain(organization.primary_domain) == organization
        assert on.read.organizations.find_by_domain("nobody.example") is None
        moved = replace(organization, primary_domain="moved.example", version=2)
        on.write.organizations.update(moved)
        assert on.read.organizations.find_by_domain("moved.example") == moved
        assert on.read.organizations.find_by_domain(organization.primary_domain) is None

    def test_organizations_rules_version_moves_and_comes_with_each_subject(self, on: StorageHarness) -> None:
        assert on.read.organizations.get_rules_version() is None, "there is no instance whose it is"
        on.store_value(make_instance())
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
        rows = [make_organization(name=name, primary_domain=f"{n}.test") for n, name in enumerate(everyone)]
        on.store(*rows)
        check_query(on.read.organizations.page, query, [row for row in rows if row.name in names])

    def test_organizations_page_by_start_and_state_together(self, on: StorageHarness) -> None:
        organization = make_organization(name="Acme")
        on.store(organization, make_organization(name="Acme", active=False), make_organization(name="Bolt"))
        page = on.read.organizations.page(PageRequest(limit=10, query="acm", active=True))
        assert page.items == (organization,)
