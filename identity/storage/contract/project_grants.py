"""Contract of the project grant store."""

from functools import partial

import pytest

from identity.domain.projects import ProjectGrant
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.page_checks import check_query


class ProjectGrantContract(ContractBase):
    """A project is granted to an organization once; what derives from the grant is deleted with it."""

    @pytest.fixture
    def grant(self, on: StorageHarness) -> ProjectGrant:
        return on.store_value(make.project_grant(on.project, on.other_organization))

    def test_project_grants_find_for(self, on: StorageHarness, grant: ProjectGrant) -> None:
        organization = on.organization
        assert on.read.project_grants.find_for_organization(on.project.id, on.other_organization.id) == grant
        assert on.read.project_grants.find_for_organization(on.project.id, organization.id) is None
        assert on.read.project_grants.find_for_organization(make_id(), on.other_organization.id) is None

    def test_project_grants_pages_by_what_stands_at_the_other_end(
        self, on: StorageHarness, grant: ProjectGrant
    ) -> None:
        holder = make.organization(name="Grande Société", primary_domain="societe.test")
        lent = make.project_grant(on.project, holder)
        on.store(holder, lent)
        grants = partial(on.read.project_grants.page, "project_id", on.project.id)
        fetch_received = partial(on.read.project_grants.page, "organization_id", on.other_organization.id)
        check_query(grants, "societe", [lent])
        check_query(grants, "zzz", [])
        check_query(fetch_received, on.project.name[1:], [grant])
        check_query(fetch_received, "zzz", [])

    def test_project_grants_ending_are_listed_soonest_first(self, on: StorageHarness, grant: ProjectGrant) -> None:
        projects = [make.project(on.organization) for _ in range(3)]
        late, soon, past = (
            make.project_grant(project, on.other_organization, until=NOW + days * DAY)
            for project, days in zip(projects, (7, 1, -1), strict=True)
        )
        on.store(*projects, late, soon, past)
        read = on.read.project_grants.list_ending
        assert read(NOW, NOW + 7 * DAY, 10) == (soon, late)
        for party in (on.organization, on.other_organization):
            assert read(NOW, NOW + 7 * DAY, 10, organization_id=party.id) == (soon, late)
        assert read(NOW, NOW + 7 * DAY, 10, organization_id="x") == ()
        assert read(NOW, NOW + 6 * DAY, 10) == (soon,)
        assert read(None, NOW + 7 * DAY, 2) == (past, soon)
