"""What is demanded of the organization store."""

from dataclasses import replace

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Level, ResourceKey
from identity.domain.service_user_keys import ServiceUserKey
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    a_code,
    a_family,
    a_human_user,
    a_key,
    a_manager,
    a_password,
    a_project,
    a_project_grant,
    a_project_role,
    a_refresh_token,
    a_service_user,
    a_user_grant,
    an_access_token,
    an_application,
    an_organization,
)
from identity.storage.contract.paging import (
    Fetch,
    check_query,
    fetching,
)
from identity.storage.errors import Duplicate
from identity.storage.paging import PageRequest


class OrganizationContract(ContractBase):
    """Organizations are found by id and domain, listed by name, and take all that is theirs along."""

    @pytest.fixture
    def organizations(self, on: On) -> Fetch[Organization]:
        """The list of all organizations."""
        return fetching(on.reading, lambda storage, request: storage.organizations.page(request))

    def test_organizations_find_by_domain(self, on: On) -> None:
        organization = on.organization
        on.save(an_organization())
        assert on.read.organizations.find_by_domain(organization.primary_domain) == organization
        assert on.read.organizations.find_by_domain("nobody.example") is None
        moved = replace(organization, primary_domain="moved.example", version=2)
        on.write.organizations.update(moved)
        assert on.read.organizations.find_by_domain("moved.example") == moved
        assert on.read.organizations.find_by_domain(organization.primary_domain) is None

    def test_organizations_a_taken_domain_is_refused(self, on: On) -> None:
        with pytest.raises(Duplicate) as refusal:
            on.write.organizations.add(an_organization(primary_domain=on.organization.primary_domain))
        assert refusal.value.field == "primary_domain"

    def test_organizations_update_to_a_taken_domain_is_refused(self, on: On) -> None:
        with pytest.raises(Duplicate) as refusal:
            on.write.organizations.update(
                replace(on.organization, primary_domain=on.other_organization.primary_domain, version=2)
            )
        assert refusal.value.field == "primary_domain"

    def test_organizations_remove_takes_users_along(self, on: On) -> None:
        person, robot = a_human_user(on.organization), a_service_user(on.organization)
        password, key = a_password(person), a_key(robot)
        token, manager = an_access_token(robot), a_manager(person)
        on.save(person, robot, password, key, token, manager)
        on.write.organizations.remove(on.organization.id)
        assert on.read.users.find(person.id) is None
        assert on.read.users.find(robot.id) is None
        assert on.read.users.find_password(person.id) is None
        assert on.read.credentials.find(ServiceUserKey, key.id, robot.id) is None
        assert on.read.managers.find(manager.id) is None
        assert on.read.tokens.find_access(token.digest) is None

    def test_organizations_remove_takes_projects_along(self, on: On) -> None:
        project = a_project(on.organization)
        role, application = a_project_role(project), an_application(project)
        stranger = a_human_user(on.other_organization)
        grant = a_project_grant(project, on.other_organization)
        user_grant = a_user_grant(stranger, project, grant)
        family = a_family(stranger, application)
        code, token, refresh = a_code(family), an_access_token(stranger, application, family), a_refresh_token(family)
        on.save(project, role, application, stranger, grant, user_grant, family, code, token, refresh)
        on.write.organizations.remove(on.organization.id)
        assert on.read.projects.find(project.id) is None
        assert on.read.projects.roles(project.id) == ()
        assert on.read.applications.find(application.id) is None
        assert on.read.project_grants.find(grant.id) is None
        assert on.read.user_grants.find(user_grant.id) is None
        assert on.read.tokens.find_family(family.id) is None
        assert on.read.tokens.find_access(token.digest) is None
        assert on.read.tokens.find_refresh(refresh.digest) is None
        assert on.read.users.find(stranger.id) == stranger, "users of other organizations stay"

    def test_organizations_remove_takes_grants_held_along(self, on: On) -> None:
        foreign = a_project(on.other_organization)
        grant = a_project_grant(foreign, on.organization)
        on.save(foreign, grant)
        on.write.organizations.remove(on.organization.id)
        assert on.read.project_grants.find(grant.id) is None
        assert on.read.projects.find(foreign.id) == foreign

    def test_organizations_remove_takes_managers_of_the_organization_along(self, on: On) -> None:
        stranger = a_human_user(on.other_organization)
        here = a_manager(stranger, ResourceKey(Level.ORGANIZATION, on.organization.id))
        there = a_manager(stranger, ResourceKey(Level.ORGANIZATION, on.other_organization.id))
        on.save(stranger, here, there)
        on.write.organizations.remove(on.organization.id)
        assert on.read.managers.of_user(stranger.id) == (there,)

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
    def test_organizations_page_by_any_part_of_the_name(
        self, on: On, organizations: Fetch[Organization], query: str, names: set[str]
    ) -> None:
        everyone = ("Acme", "ACME II", "Bolt", "Straße", "ﬁne", "%percent", "_under", "\\back", "'quote", "株式会社")
        rows = [an_organization(name=name, primary_domain=f"{n}.test") for n, name in enumerate(everyone)]
        on.save(*rows)
        check_query(organizations, query, [row for row in rows if row.name in names])

    def test_organizations_page_by_start_and_state_together(self, on: On, organizations: Fetch[Organization]) -> None:
        wanted = an_organization(name="Acme")
        on.save(wanted, an_organization(name="Acme", active=False), an_organization(name="Bolt"))
        page = organizations(PageRequest(limit=10, query="acm", active=True))
        assert page.items == (wanted,)
