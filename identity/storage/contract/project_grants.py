"""What is demanded of the project grant store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.permissions import Level, ResourceKey
from identity.domain.projects import ProjectGrant
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_human_user,
    a_manager,
    a_project,
    a_project_grant,
    a_user_grant,
    an_id,
    an_organization,
)
from identity.storage.contract.paging import (
    Fetch,
    check_active,
    check_insertion,
    check_order,
    check_query,
    check_ties,
    fetching,
)
from identity.storage.errors import Duplicate, Missing, Stale


class ProjectGrantContract(ContractBase):
    """A project is granted to an organization once; what derives from the grant goes with it."""

    @pytest.fixture
    def grant(self, on: On) -> ProjectGrant:
        """``project``, granted to ``other_organization``."""
        grant = a_project_grant(on.project, on.other_organization)
        on.save(grant)
        return grant

    @pytest.fixture
    def grants(self, on: On) -> Fetch[ProjectGrant]:
        """The list of the grants of ``project``."""
        project = on.project
        return fetching(on.reading, lambda storage, request: storage.project_grants.page(project.id, request))

    @pytest.fixture
    def grants_held(self, on: On) -> Fetch[ProjectGrant]:
        """The list of the grants that ``other_organization`` holds."""
        other_organization = on.other_organization
        return fetching(
            on.reading, lambda storage, request: storage.project_grants.page_held(other_organization.id, request)
        )

    def test_project_grants_find_returns_what_was_added(self, on: On) -> None:
        grant = a_project_grant(
            on.project, on.other_organization, roles=frozenset({"löwe", "株", "a b"}), active=False, version=4
        )
        on.save(grant)
        with on.reading() as storage:
            assert storage.project_grants.find(grant.id) == grant
            assert storage.project_grants.find(an_id()) is None

    def test_project_grants_a_grant_may_hold_no_role(self, on: On) -> None:
        grant = a_project_grant(on.project, on.other_organization, roles=frozenset())
        on.save(grant)
        with on.reading() as storage:
            assert storage.project_grants.find(grant.id) == grant

    def test_project_grants_find_for(self, on: On, grant: ProjectGrant) -> None:
        project, organization, other_organization = on.project, on.organization, on.other_organization
        with on.reading() as storage:
            assert storage.project_grants.find_for(project.id, other_organization.id) == grant
            assert storage.project_grants.find_for(project.id, organization.id) is None
            assert storage.project_grants.find_for(an_id(), other_organization.id) is None

    def test_project_grants_a_second_grant_to_the_same_organization_is_refused(
        self, on: On, grant: ProjectGrant
    ) -> None:
        project, other_organization = on.project, on.other_organization
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.project_grants.add(a_project_grant(project, other_organization))
        assert refusal.value.field == "organization_id"

    def test_project_grants_a_grant_needs_its_project(self, on: On) -> None:
        other_organization = on.other_organization
        with pytest.raises(Missing), on.writing() as storage:
            storage.project_grants.add(a_project_grant(None, other_organization))

    def test_project_grants_a_grant_needs_its_organization(self, on: On) -> None:
        project = on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.project_grants.add(a_project_grant(project, None))

    def test_project_grants_update_replaces_the_value(self, on: On, grant: ProjectGrant) -> None:
        changed = replace(
            grant,
            roles=frozenset({"admin"}),
            accepted=True,
            active=False,
            changed_at=grant.changed_at + timedelta(seconds=1),
            version=2,
        )
        with on.writing() as storage:
            storage.project_grants.update(changed)
        with on.reading() as storage:
            assert storage.project_grants.find(grant.id) == changed

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_project_grants_update_of_another_version_is_stale(self, on: On, grant: ProjectGrant, version: int) -> None:
        with pytest.raises(Stale), on.writing() as storage:
            storage.project_grants.update(replace(grant, roles=frozenset(), version=version))
        with on.reading() as storage:
            assert storage.project_grants.find(grant.id) == grant

    def test_project_grants_update_of_an_unknown_grant(self, on: On) -> None:
        project, other_organization = on.project, on.other_organization
        with pytest.raises(Missing), on.writing() as storage:
            storage.project_grants.update(a_project_grant(project, other_organization, version=2))

    def test_project_grants_remove_of_an_unknown_grant(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.project_grants.remove(an_id())

    def test_project_grants_remove_takes_what_derives_from_it_along(self, on: On, grant: ProjectGrant) -> None:
        user = a_human_user(on.other_organization)
        derived, direct = a_user_grant(user, on.project, grant), a_user_grant(user, on.project)
        manager = a_manager(user, ResourceKey(Level.PROJECT_GRANT, grant.id))
        elsewhere = a_manager(user, ResourceKey(Level.PROJECT, on.project.id))
        on.save(user, derived, direct, manager, elsewhere)
        with on.writing() as storage:
            storage.project_grants.remove(grant.id)
        with on.reading() as storage:
            assert storage.project_grants.find(grant.id) is None
            assert storage.user_grants.find(derived.id) is None
            assert storage.user_grants.find(direct.id) == direct, "a user grant by the owner stays"
            assert storage.managers.of_user(user.id) == (elsewhere,)

    def test_project_grants_page_shows_the_project_alone(
        self, on: On, grants: Fetch[ProjectGrant], grant: ProjectGrant
    ) -> None:
        other_project = a_project(on.organization)
        on.save(other_project, a_project_grant(other_project, on.other_organization))
        check_order(grants, [grant])

    def test_project_grants_page_is_newest_first(self, on: On, grants: Fetch[ProjectGrant]) -> None:
        holders = [an_organization() for _ in range(4)]
        ordered = [
            a_project_grant(on.project, holder, created_at=NOW - timedelta(seconds=age))
            for age, holder in enumerate(holders)
        ]
        on.save(*holders, *ordered)
        check_order(grants, ordered)

    def test_project_grants_page_of_the_same_second(self, on: On, grants: Fetch[ProjectGrant]) -> None:
        holders = [an_organization() for _ in range(5)]
        rows = [a_project_grant(on.project, holder) for holder in holders]
        on.save(*holders, *rows)
        check_ties(grants, rows)

    def test_project_grants_page_while_rows_come(self, on: On, grants: Fetch[ProjectGrant]) -> None:
        holders = [an_organization() for _ in range(7)]
        rows = [
            a_project_grant(on.project, holder, created_at=NOW - timedelta(seconds=2 * index))
            for index, holder in enumerate(holders)
        ]
        on.save(*holders, *rows[::2])
        check_insertion(grants, lambda: on.save(*rows[1::2]), rows[::2])

    def test_project_grants_page_by_state(self, on: On, grants: Fetch[ProjectGrant]) -> None:
        holders = [an_organization() for _ in range(3)]
        rows = [a_project_grant(on.project, holder, active=holder is not holders[0]) for holder in holders]
        on.save(*holders, *rows)
        check_active(grants, active=rows[1:], inactive=rows[:1])

    def test_project_grants_pages_by_what_stands_at_the_other_end(
        self, on: On, grants: Fetch[ProjectGrant], grants_held: Fetch[ProjectGrant], grant: ProjectGrant
    ) -> None:
        holder = an_organization(name="Grande Société", primary_domain="societe.test")
        lent = a_project_grant(on.project, holder)
        on.save(holder, lent)
        check_query(grants, "societe", [lent])
        check_query(grants, "zzz", [])
        check_query(grants_held, on.project.name[1:], [grant])
        check_query(grants_held, "zzz", [])

    def test_project_grants_page_held_shows_the_holder_alone(
        self, on: On, grants_held: Fetch[ProjectGrant], grant: ProjectGrant
    ) -> None:
        third, other_project = an_organization(), a_project(on.organization)
        older = a_project_grant(other_project, on.other_organization, created_at=NOW - timedelta(days=1))
        on.save(third, other_project, older, a_project_grant(on.project, third))
        check_order(grants_held, [grant, older])

    def test_project_grants_page_held_of_the_same_second(self, on: On, grants_held: Fetch[ProjectGrant]) -> None:
        projects = [a_project(on.organization) for _ in range(5)]
        rows = [a_project_grant(project, on.other_organization) for project in projects]
        on.save(*projects, *rows)
        check_ties(grants_held, rows)

    def test_project_grants_find_many(self, on: On) -> None:
        grants = [a_project_grant(on.project, each) for each in (on.organization, on.other_organization)]
        on.save(*grants)
        with on.reading() as storage:
            found = storage.project_grants.find_many([*(grant.id for grant in grants), an_id()])
            assert found == {grant.id: grant for grant in grants}
            assert storage.project_grants.find_many(()) == {}
