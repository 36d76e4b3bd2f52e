"""What is demanded of the project grant store."""

from functools import partial

import pytest

from identity.domain.projects import ProjectGrant
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import a_project_grant, an_id, an_organization
from identity.storage.contract.paging import check_query


class ProjectGrantContract(ContractBase):
    """A project is granted to an organization once; what derives from the grant goes with it."""

    @pytest.fixture
    def grant(self, on: On) -> ProjectGrant:
        """``project``, granted to ``other_organization``."""
        return on.saved(a_project_grant(on.project, on.other_organization))

    def test_project_grants_find_for(self, on: On, grant: ProjectGrant) -> None:
        organization = on.organization
        assert on.read.project_grants.find_for(on.project.id, on.other_organization.id) == grant
        assert on.read.project_grants.find_for(on.project.id, organization.id) is None
        assert on.read.project_grants.find_for(an_id(), on.other_organization.id) is None

    def test_project_grants_pages_by_what_stands_at_the_other_end(self, on: On, grant: ProjectGrant) -> None:
        holder = an_organization(name="Grande Société", primary_domain="societe.test")
        lent = a_project_grant(on.project, holder)
        on.save(holder, lent)
        grants = partial(on.read.project_grants.page, "project_id", on.project.id)
        held = partial(on.read.project_grants.page, "organization_id", on.other_organization.id)
        check_query(grants, "societe", [lent])
        check_query(grants, "zzz", [])
        check_query(
            held,
            on.project.name[1:],
            [grant],
        )
        check_query(held, "zzz", [])
