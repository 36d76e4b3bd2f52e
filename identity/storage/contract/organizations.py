"""What is demanded of the organization store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import Level, ResourceKey
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
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
    an_id,
    an_organization,
)
from identity.storage.contract.paging import (
    Fetch,
    check_active,
    check_insertion,
    check_order,
    check_query,
    check_removal,
    check_sorts,
    check_ties,
    check_totals,
    fetching,
)
from identity.storage.errors import Duplicate, Missing, Stale
from identity.storage.paging import PageRequest
from identity.storage.stores.organizations import ORDERS


class OrganizationContract(ContractBase):
    """Organizations are found by id and domain, listed by name, and take all that is theirs along."""

    @pytest.fixture
    def organizations(self, on: On) -> Fetch[Organization]:
        """The list of all organizations."""
        return fetching(on.reading, lambda storage, request: storage.organizations.page(request))

    def test_organizations_find_returns_what_was_added(self, on: On) -> None:
        organization = an_organization(name="Æther & Söhne 株式会社", registration=False, active=False, version=7)
        on.save(organization)
        with on.reading() as storage:
            assert storage.organizations.find(organization.id) == organization

    def test_organizations_moments_come_back_aware_and_in_utc(self, on: On) -> None:
        organization = on.organization
        with on.reading() as storage:
            found = storage.organizations.find(organization.id)
        assert found is not None
        assert found.created_at.utcoffset() == timedelta(0)

    def test_organizations_find_of_an_unknown_id(self, on: On) -> None:
        on.save(an_organization())
        with on.reading() as storage:
            assert storage.organizations.find(an_id()) is None

    def test_organizations_find_by_domain(self, on: On) -> None:
        organization = on.organization
        on.save(an_organization())
        with on.reading() as storage:
            assert storage.organizations.find_by_domain(organization.primary_domain) == organization
            assert storage.organizations.find_by_domain("nobody.example") is None

    def test_organizations_a_taken_id_is_refused(self, on: On) -> None:
        organization = on.organization
        with pytest.raises(Duplicate), on.writing() as storage:
            storage.organizations.add(an_organization(id=organization.id, name="Thief"))
        with on.reading() as storage:
            assert storage.organizations.find(organization.id) == organization

    def test_organizations_a_taken_domain_is_refused(self, on: On) -> None:
        organization = on.organization
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.organizations.add(an_organization(primary_domain=organization.primary_domain))
        assert refusal.value.field == "primary_domain"

    def test_organizations_update_replaces_the_value(self, on: On) -> None:
        organization = on.organization
        changed = replace(
            organization,
            name="Acme Ltd",
            primary_domain="acme.example",
            registration=False,
            active=False,
            changed_at=organization.changed_at + timedelta(seconds=1),
            version=2,
        )
        with on.writing() as storage:
            storage.organizations.update(changed)
        with on.reading() as storage:
            assert storage.organizations.find(organization.id) == changed
            assert storage.organizations.find_by_domain("acme.example") == changed
            assert storage.organizations.find_by_domain(organization.primary_domain) is None

    def test_organizations_update_to_a_taken_domain_is_refused(self, on: On) -> None:
        organization, other_organization = on.organization, on.other_organization
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.organizations.update(
                replace(organization, primary_domain=other_organization.primary_domain, version=2)
            )
        assert refusal.value.field == "primary_domain"

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_organizations_update_of_another_version_is_stale(self, on: On, version: int) -> None:
        organization = on.organization
        with pytest.raises(Stale), on.writing() as storage:
            storage.organizations.update(replace(organization, name="Lost", version=version))
        with on.reading() as storage:
            assert storage.organizations.find(organization.id) == organization

    def test_organizations_update_of_an_unknown_organization(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.organizations.update(an_organization(version=2))

    def test_organizations_remove(self, on: On) -> None:
        organization, other_organization = on.organization, on.other_organization
        with on.writing() as storage:
            storage.organizations.remove(organization.id)
        with on.reading() as storage:
            assert storage.organizations.find(organization.id) is None
            assert storage.organizations.find(other_organization.id) == other_organization

    def test_organizations_remove_of_an_unknown_organization(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.organizations.remove(an_id())

    def test_organizations_remove_takes_users_along(self, on: On) -> None:
        person, robot = a_human_user(on.organization), a_service_user(on.organization)
        password, key = a_password(person), a_key(robot)
        token, manager = an_access_token(robot), a_manager(person)
        on.save(person, robot, password, key, token, manager)
        with on.writing() as storage:
            storage.organizations.remove(on.organization.id)
        with on.reading() as storage:
            assert storage.users.find(person.id) is None
            assert storage.users.find(robot.id) is None
            assert storage.users.find_password(person.id) is None
            assert storage.service_user_keys.find(key.id, robot.id) is None
            assert storage.managers.find(manager.id) is None
            assert storage.tokens.find_access(token.digest) is None

    def test_organizations_remove_takes_projects_along(self, on: On) -> None:
        project = a_project(on.organization)
        role, application = a_project_role(project), an_application(project)
        stranger = a_human_user(on.other_organization)
        grant = a_project_grant(project, on.other_organization)
        user_grant = a_user_grant(stranger, project, grant)
        family = a_family(stranger, application)
        code, token, refresh = a_code(family), an_access_token(stranger, application, family), a_refresh_token(family)
        on.save(project, role, application, stranger, grant, user_grant, family, code, token, refresh)
        with on.writing() as storage:
            storage.organizations.remove(on.organization.id)
        with on.reading() as storage:
            assert storage.projects.find(project.id) is None
            assert storage.projects.roles(project.id) == ()
            assert storage.applications.find(application.id) is None
            assert storage.project_grants.find(grant.id) is None
            assert storage.user_grants.find(user_grant.id) is None
            assert storage.tokens.find_family(family.id) is None
            assert storage.tokens.find_access(token.digest) is None
            assert storage.tokens.find_refresh(refresh.digest) is None
            assert storage.users.find(stranger.id) == stranger, "users of other organizations stay"

    def test_organizations_remove_takes_grants_held_along(self, on: On) -> None:
        foreign = a_project(on.other_organization)
        grant = a_project_grant(foreign, on.organization)
        on.save(foreign, grant)
        with on.writing() as storage:
            storage.organizations.remove(on.organization.id)
        with on.reading() as storage:
            assert storage.project_grants.find(grant.id) is None
            assert storage.projects.find(foreign.id) == foreign

    def test_organizations_remove_takes_managers_of_the_organization_along(self, on: On) -> None:
        stranger = a_human_user(on.other_organization)
        here = a_manager(stranger, ResourceKey(Level.ORGANIZATION, on.organization.id))
        there = a_manager(stranger, ResourceKey(Level.ORGANIZATION, on.other_organization.id))
        on.save(stranger, here, there)
        with on.writing() as storage:
            storage.organizations.remove(on.organization.id)
        with on.reading() as storage:
            assert storage.managers.of_user(stranger.id) == (there,)

    def test_organizations_page_of_nothing(self, organizations: Fetch[Organization]) -> None:
        check_order(organizations, [])

    def test_organizations_page_is_ordered_by_name(self, on: On, organizations: Fetch[Organization]) -> None:
        ordered = [an_organization(name=name) for name in ("alpha", "Beta", "delta", "Gamma", "omega")]
        on.save(*reversed(ordered))
        check_order(organizations, ordered)

    def test_organizations_page_orders_equal_names_by_id(self, on: On, organizations: Fetch[Organization]) -> None:
        ordered = sorted((an_organization(name="Same") for _ in range(5)), key=lambda each: each.id)
        on.save(*reversed(ordered))
        check_order(organizations, ordered)

    def test_organizations_page_is_stable_for_names_in_any_script(
        self, on: On, organizations: Fetch[Organization]
    ) -> None:
        names = ("Ωmega", "ωMEGA", "Çelik", "C̣elik", "株式会社", "Straße", "STRASSE", "😀 Smile", "ﬁne", "'quoted\"")
        rows = [an_organization(name=name) for name in names]
        on.save(*rows)
        check_ties(organizations, rows)

    def test_organizations_page_while_rows_come(self, on: On, organizations: Fetch[Organization]) -> None:
        rows = [an_organization(name=name) for name in ("b", "d", "f", "h")]
        on.save(*rows)
        more = [an_organization(name=name) for name in ("a", "c", "d", "e", "i")]
        check_insertion(organizations, lambda: on.save(*more), rows)

    def test_organizations_page_while_rows_go(self, on: On, organizations: Fetch[Organization]) -> None:
        rows = [an_organization(name=name) for name in ("a", "b", "c", "d")]
        on.save(*rows)

        def remove(organization: Organization) -> None:
            with on.writing() as storage:
                storage.organizations.remove(organization.id)

        check_removal(organizations, remove, rows)

    def test_organizations_page_by_state(self, on: On, organizations: Fetch[Organization]) -> None:
        active = [an_organization(), an_organization()]
        inactive = [an_organization(active=False)]
        on.save(*active, *inactive)
        check_active(organizations, active=active, inactive=inactive)

    def test_organizations_page_sorted_by_each_of_its_orders(self, on: On, organizations: Fetch[Organization]) -> None:
        for name, seconds, active in (("Beta-all", 2, True), ("alpha-all", 3, False), ("gamma-all", 2, True)):
            on.save(an_organization(name=name, created_at=NOW + timedelta(seconds=seconds), active=active))
        check_sorts(organizations, ORDERS, "ALL")
        check_totals(organizations, rows=3, active=2)

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

    def test_organizations_find_many(self, on: On) -> None:
        organization, other_organization = on.organization, on.other_organization
        with on.reading() as storage:
            both = {each.id: each for each in (organization, other_organization)}
            assert storage.organizations.find_many([organization.id, an_id(), other_organization.id]) == both
            assert storage.organizations.find_many({organization.id}) == {organization.id: organization}
            assert storage.organizations.find_many(()) == {}
