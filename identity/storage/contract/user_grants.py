"""What is demanded of the user grant store."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.domain.organizations import Organization
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser, Profile
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import (
    a_human_user,
    a_project,
    a_project_grant,
    a_user_grant,
    an_id,
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
from identity.storage.paging import PageRequest, Total


class UserGrantContract(ContractBase):
    """A user holds roles in a project once directly and once by way of each project grant."""

    @pytest.fixture
    def user_grant(self, save: Save, human_user: HumanUser, project: Project) -> UserGrant:
        """The role reader in ``project``, given to ``human_user``."""
        grant = a_user_grant(human_user, project)
        save(grant)
        return grant

    @pytest.fixture
    def project_grant(self, save: Save, organization: Organization, other_organization: Organization) -> ProjectGrant:
        """A project of ``other_organization``, granted to ``organization`` with the roles reader and writer."""
        project = a_project(other_organization)
        grant = a_project_grant(project, organization, roles=frozenset({"reader", "writer"}))
        save(project, grant)
        return grant

    @pytest.fixture
    def of_user(self, reading: Reading, human_user: HumanUser) -> Fetch[UserGrant]:
        """The list of the grants of ``human_user``."""
        return fetching(reading, lambda storage, request: storage.user_grants.page_of_user(human_user.id, request))

    @pytest.fixture
    def of_project(self, reading: Reading, project: Project) -> Fetch[UserGrant]:
        """The list of the grants in ``project``."""
        return fetching(reading, lambda storage, request: storage.user_grants.page_of_project(project.id, request))

    def test_user_grants_find_returns_what_was_added(
        self, save: Save, reading: Reading, human_user: HumanUser, project_grant: ProjectGrant
    ) -> None:
        grant = a_user_grant(
            human_user,
            None,
            project_grant,
            project_id=project_grant.project_id,
            roles=frozenset({"writer", "größe"}),
            active=False,
            version=2,
        )
        save(grant)
        with reading() as storage:
            assert storage.user_grants.find(grant.id) == grant
            assert storage.user_grants.find(an_id()) is None

    def test_user_grants_a_second_direct_grant_is_refused(
        self, in_transaction: InTransaction, human_user: HumanUser, project: Project, user_grant: UserGrant
    ) -> None:
        with pytest.raises(Duplicate) as refusal, in_transaction() as storage:
            storage.user_grants.add(a_user_grant(human_user, project))
        assert refusal.value.field == "user_id"

    def test_user_grants_a_second_grant_by_the_same_project_grant_is_refused(
        self, save: Save, in_transaction: InTransaction, human_user: HumanUser, project_grant: ProjectGrant
    ) -> None:
        save(a_user_grant(human_user, None, project_grant, project_id=project_grant.project_id))
        with pytest.raises(Duplicate) as refusal, in_transaction() as storage:
            storage.user_grants.add(a_user_grant(human_user, None, project_grant, project_id=project_grant.project_id))
        assert refusal.value.field == "user_id"

    def test_user_grants_a_direct_and_a_derived_grant_stand_side_by_side(
        self, save: Save, reading: Reading, human_user: HumanUser, project_grant: ProjectGrant
    ) -> None:
        derived = a_user_grant(human_user, None, project_grant, project_id=project_grant.project_id)
        direct = replace(derived, id=an_id(), project_grant_id=None)
        save(direct, derived)
        with reading() as storage:
            assert storage.user_grants.find(direct.id) == direct
            assert storage.user_grants.find(derived.id) == derived

    def test_user_grants_a_grant_needs_its_user(self, in_transaction: InTransaction, project: Project) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.user_grants.add(a_user_grant(None, project))

    def test_user_grants_a_grant_needs_its_project(
        self, in_transaction: InTransaction, human_user: HumanUser, organization: Organization
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.user_grants.add(a_user_grant(human_user, None, organization_id=organization.id))

    def test_user_grants_a_derived_grant_needs_its_project_grant(
        self, in_transaction: InTransaction, human_user: HumanUser, project: Project
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.user_grants.add(a_user_grant(human_user, project, project_grant_id=an_id()))

    def test_user_grants_update_replaces_the_value(
        self, in_transaction: InTransaction, reading: Reading, user_grant: UserGrant
    ) -> None:
        changed = replace(
            user_grant,
            roles=frozenset({"admin", "writer"}),
            active=False,
            changed_at=user_grant.changed_at + timedelta(seconds=1),
            version=2,
        )
        with in_transaction() as storage:
            storage.user_grants.update(changed)
        with reading() as storage:
            assert storage.user_grants.find(user_grant.id) == changed

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_user_grants_update_of_another_version_is_stale(
        self, in_transaction: InTransaction, reading: Reading, user_grant: UserGrant, version: int
    ) -> None:
        with pytest.raises(Stale), in_transaction() as storage:
            storage.user_grants.update(replace(user_grant, roles=frozenset({"admin"}), version=version))
        with reading() as storage:
            assert storage.user_grants.find(user_grant.id) == user_grant

    def test_user_grants_update_of_an_unknown_grant(
        self, in_transaction: InTransaction, human_user: HumanUser, project: Project
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.user_grants.update(a_user_grant(human_user, project, version=2))

    def test_user_grants_remove(self, in_transaction: InTransaction, reading: Reading, user_grant: UserGrant) -> None:
        with in_transaction() as storage:
            storage.user_grants.remove(user_grant.id)
        with reading() as storage:
            assert storage.user_grants.find(user_grant.id) is None

    def test_user_grants_remove_of_an_unknown_grant(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.user_grants.remove(an_id())

    def test_user_grants_page_of_user_is_newest_first(
        self,
        save: Save,
        of_user: Fetch[UserGrant],
        organization: Organization,
        human_user: HumanUser,
        now: datetime,
    ) -> None:
        stranger = a_human_user(organization)
        projects = [a_project(organization) for _ in range(4)]
        ordered = [
            a_user_grant(human_user, project, created_at=now - timedelta(seconds=age))
            for age, project in enumerate(projects)
        ]
        save(stranger, *projects, *ordered, a_user_grant(stranger, projects[0]))
        check_order(of_user, ordered)

    def test_user_grants_page_of_user_in_the_same_second(
        self, save: Save, of_user: Fetch[UserGrant], organization: Organization, human_user: HumanUser
    ) -> None:
        projects = [a_project(organization) for _ in range(5)]
        rows = [a_user_grant(human_user, project) for project in projects]
        save(*projects, *rows)
        check_ties(of_user, rows)

    def test_user_grants_page_of_user_by_state(
        self, save: Save, of_user: Fetch[UserGrant], organization: Organization, human_user: HumanUser
    ) -> None:
        projects = [a_project(organization) for _ in range(3)]
        rows = [a_user_grant(human_user, project, active=project is not projects[0]) for project in projects]
        save(*projects, *rows)
        check_active(of_user, active=rows[1:], inactive=rows[:1])

    def test_user_grants_pages_by_what_stands_at_the_other_end(
        self,
        save: Save,
        reading: Reading,
        of_user: Fetch[UserGrant],
        of_project: Fetch[UserGrant],
        organization: Organization,
        other_organization: Organization,
        human_user: HumanUser,
        project: Project,
    ) -> None:
        zoe = a_human_user(organization, user_name="zoe", profile=Profile(given_name="Zoë", family_name="Hopper"))
        saturn = a_project(organization, name="Saturn")
        lent = a_project_grant(project, other_organization)
        mine, hers, on_loan = (
            a_user_grant(human_user, saturn),
            a_user_grant(zoe, project),
            a_user_grant(zoe, project, project_grant_id=lent.id),
        )
        save(zoe, saturn, lent, a_user_grant(human_user, project), mine, hers, on_loan)
        derived = fetching(
            reading, lambda storage, request: storage.user_grants.page_of_project_grant(lent.id, request)
        )
        check_query(of_user, "atur", [mine])
        check_query(of_project, "hopper", [hers, on_loan])
        check_query(of_project, f"zoe@{organization.primary_domain}", [hers, on_loan])
        check_query(derived, "ZOE", [on_loan])
        check_query(derived, "ada", [])

    def test_user_grants_searches_find_users_of_the_organizations_that_they_are_within(
        self,
        save: Save,
        reading: Reading,
        other_organization: Organization,
        human_user: HumanUser,
        project: Project,
        user_grant: UserGrant,
    ) -> None:
        lent = a_project_grant(project, other_organization)
        foreign = a_human_user(other_organization, profile=human_user.profile)
        derived = a_user_grant(foreign, None, lent, project_id=project.id)
        save(lent, foreign, derived)
        name, own = human_user.profile.family_name, frozenset({human_user.organization_id})

        def found(within: frozenset[str] | None, query: str = name) -> set[str]:
            request = PageRequest(query=query, counted=True)
            with reading() as storage:
                page = storage.user_grants.page_of_project(project.id, request, within=within)
            assert page.total == Total(len(page))
            return {one.id for one in page}

        assert found(None) == {user_grant.id, derived.id}
        assert found(own) == {user_grant.id}
        assert found(frozenset()) == set()
        assert found(frozenset(), "") == {user_grant.id, derived.id}, "only searches are narrowed"
        with reading() as storage:
            request = PageRequest(query=name)
            assert storage.user_grants.page_of_project_grant(lent.id, request, within=own).items == ()
            assert storage.user_grants.page_of_project_grant(lent.id, request).items == (derived,)

    def test_user_grants_page_of_project_is_newest_first(
        self,
        save: Save,
        of_project: Fetch[UserGrant],
        organization: Organization,
        project: Project,
        now: datetime,
    ) -> None:
        users = [a_human_user(organization) for _ in range(4)]
        ordered = [
            a_user_grant(user, project, created_at=now - timedelta(seconds=age)) for age, user in enumerate(users)
        ]
        other = a_project(organization)
        save(*users, *ordered, other, a_user_grant(users[0], other))
        check_order(of_project, ordered)

    def test_user_grants_page_of_project_in_the_same_second(
        self, save: Save, of_project: Fetch[UserGrant], organization: Organization, project: Project
    ) -> None:
        users = [a_human_user(organization) for _ in range(5)]
        rows = [a_user_grant(user, project) for user in users]
        save(*users, *rows)
        check_ties(of_project, rows)

    def test_user_grants_page_of_project_while_rows_come(
        self,
        save: Save,
        of_project: Fetch[UserGrant],
        organization: Organization,
        project: Project,
        now: datetime,
    ) -> None:
        users = [a_human_user(organization) for _ in range(7)]
        rows = [
            a_user_grant(user, project, created_at=now - timedelta(seconds=index)) for index, user in enumerate(users)
        ]
        save(*users, *rows[::2])
        check_insertion(of_project, lambda: save(*rows[1::2]), rows[::2])

    def test_user_grants_effective_holds_active_grants_of_the_asked_projects(
        self, save: Save, reading: Reading, organization: Organization, human_user: HumanUser
    ) -> None:
        wanted, inactive, unasked = (a_project(organization) for _ in range(3))
        stranger = a_human_user(organization)
        grant = a_user_grant(human_user, wanted)
        save(wanted, inactive, unasked, stranger, grant)
        save(
            a_user_grant(human_user, inactive, active=False),
            a_user_grant(human_user, unasked),
            a_user_grant(stranger, wanted),
        )
        with reading() as storage:
            assert storage.user_grants.effective(human_user.id, frozenset({wanted.id, inactive.id})) == (grant,)
            assert storage.user_grants.effective(human_user.id, frozenset()) == ()
            assert storage.user_grants.effective(an_id(), frozenset({wanted.id})) == ()

    def test_user_grants_effective_is_narrowed_to_the_project_grant(
        self, save: Save, reading: Reading, human_user: HumanUser, project_grant: ProjectGrant
    ) -> None:
        grant = a_user_grant(
            human_user,
            None,
            project_grant,
            project_id=project_grant.project_id,
            roles=frozenset({"reader", "admin"}),
        )
        save(grant)
        with reading() as storage:
            effective = storage.user_grants.effective(human_user.id, frozenset({project_grant.project_id}))
            stored = storage.user_grants.find(grant.id)
        assert effective == (replace(grant, roles=frozenset({"reader"})),)
        assert stored == grant, "the stored grant keeps its roles"

    def test_user_grants_effective_lacks_grants_of_an_inactive_project_grant(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        project_grant: ProjectGrant,
    ) -> None:
        save(a_user_grant(human_user, None, project_grant, project_id=project_grant.project_id))
        with in_transaction() as storage:
            storage.project_grants.update(replace(project_grant, active=False, version=2))
        with reading() as storage:
            assert storage.user_grants.effective(human_user.id, frozenset({project_grant.project_id})) == ()

    def test_user_grants_effective_lacks_grants_of_a_removed_project_grant(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        human_user: HumanUser,
        project_grant: ProjectGrant,
    ) -> None:
        save(a_user_grant(human_user, None, project_grant, project_id=project_grant.project_id))
        with in_transaction() as storage:
            storage.project_grants.remove(project_grant.id)
        with reading() as storage:
            assert storage.user_grants.effective(human_user.id, frozenset({project_grant.project_id})) == ()

    def test_user_grants_page_of_project_grant_is_newest_first(
        self,
        save: Save,
        reading: Reading,
        organization: Organization,
        project_grant: ProjectGrant,
        project: Project,
        now: datetime,
    ) -> None:
        users = [a_human_user(organization) for _ in range(5)]
        derived = [
            a_user_grant(
                user,
                None,
                project_grant,
                project_id=project_grant.project_id,
                created_at=now - timedelta(days=age),
                active=age != 1,
            )
            for age, user in enumerate(users)
        ]
        save(*users, *reversed(derived), a_user_grant(users[0], project))
        fetch = fetching(
            reading, lambda storage, request: storage.user_grants.page_of_project_grant(project_grant.id, request)
        )
        check_order(fetch, derived)
        check_active(fetch, active=[derived[0], *derived[2:]], inactive=[derived[1]])
        with reading() as storage:
            assert storage.user_grants.page_of_project_grant(an_id()).items == ()
