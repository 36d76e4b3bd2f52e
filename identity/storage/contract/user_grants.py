"""What is demanded of the user grant store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.projects import ProjectGrant, UserGrant
from identity.domain.users import Profile
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
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
    def user_grant(self, on: On) -> UserGrant:
        """The role reader in ``project``, given to ``human_user``."""
        grant = a_user_grant(on.human_user, on.project)
        on.save(grant)
        return grant

    @pytest.fixture
    def project_grant(self, on: On) -> ProjectGrant:
        """A project of ``other_organization``, granted to ``organization`` with the roles reader and writer."""
        project = a_project(on.other_organization)
        grant = a_project_grant(project, on.organization, roles=frozenset({"reader", "writer"}))
        on.save(project, grant)
        return grant

    @pytest.fixture
    def of_user(self, on: On) -> Fetch[UserGrant]:
        """The list of the grants of ``human_user``."""
        human_user = on.human_user
        return fetching(on.reading, lambda storage, request: storage.user_grants.page_of_user(human_user.id, request))

    @pytest.fixture
    def of_project(self, on: On) -> Fetch[UserGrant]:
        """The list of the grants in ``project``."""
        project = on.project
        return fetching(on.reading, lambda storage, request: storage.user_grants.page_of_project(project.id, request))

    def test_user_grants_find_returns_what_was_added(self, on: On, project_grant: ProjectGrant) -> None:
        grant = a_user_grant(
            on.human_user,
            None,
            project_grant,
            project_id=project_grant.project_id,
            roles=frozenset({"writer", "größe"}),
            active=False,
            version=2,
        )
        on.save(grant)
        with on.reading() as storage:
            assert storage.user_grants.find(grant.id) == grant
            assert storage.user_grants.find(an_id()) is None

    def test_user_grants_a_second_direct_grant_is_refused(self, on: On, user_grant: UserGrant) -> None:
        human_user, project = on.human_user, on.project
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.user_grants.add(a_user_grant(human_user, project))
        assert refusal.value.field == "user_id"

    def test_user_grants_a_second_grant_by_the_same_project_grant_is_refused(
        self, on: On, project_grant: ProjectGrant
    ) -> None:
        on.save(a_user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id))
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.user_grants.add(
                a_user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id)
            )
        assert refusal.value.field == "user_id"

    def test_user_grants_a_direct_and_a_derived_grant_stand_side_by_side(
        self, on: On, project_grant: ProjectGrant
    ) -> None:
        derived = a_user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id)
        direct = replace(derived, id=an_id(), project_grant_id=None)
        on.save(direct, derived)
        with on.reading() as storage:
            assert storage.user_grants.find(direct.id) == direct
            assert storage.user_grants.find(derived.id) == derived

    def test_user_grants_a_grant_needs_its_user(self, on: On) -> None:
        project = on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.user_grants.add(a_user_grant(None, project))

    def test_user_grants_a_grant_needs_its_project(self, on: On) -> None:
        human_user, organization = on.human_user, on.organization
        with pytest.raises(Missing), on.writing() as storage:
            storage.user_grants.add(a_user_grant(human_user, None, organization_id=organization.id))

    def test_user_grants_a_derived_grant_needs_its_project_grant(self, on: On) -> None:
        human_user, project = on.human_user, on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.user_grants.add(a_user_grant(human_user, project, project_grant_id=an_id()))

    def test_user_grants_update_replaces_the_value(self, on: On, user_grant: UserGrant) -> None:
        changed = replace(
            user_grant,
            roles=frozenset({"admin", "writer"}),
            active=False,
            changed_at=user_grant.changed_at + timedelta(seconds=1),
            version=2,
        )
        with on.writing() as storage:
            storage.user_grants.update(changed)
        with on.reading() as storage:
            assert storage.user_grants.find(user_grant.id) == changed

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_user_grants_update_of_another_version_is_stale(self, on: On, user_grant: UserGrant, version: int) -> None:
        with pytest.raises(Stale), on.writing() as storage:
            storage.user_grants.update(replace(user_grant, roles=frozenset({"admin"}), version=version))
        with on.reading() as storage:
            assert storage.user_grants.find(user_grant.id) == user_grant

    def test_user_grants_update_of_an_unknown_grant(self, on: On) -> None:
        human_user, project = on.human_user, on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.user_grants.update(a_user_grant(human_user, project, version=2))

    def test_user_grants_remove(self, on: On, user_grant: UserGrant) -> None:
        with on.writing() as storage:
            storage.user_grants.remove(user_grant.id)
        with on.reading() as storage:
            assert storage.user_grants.find(user_grant.id) is None

    def test_user_grants_remove_of_an_unknown_grant(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.user_grants.remove(an_id())

    def test_user_grants_page_of_user_is_newest_first(self, on: On, of_user: Fetch[UserGrant]) -> None:
        stranger = a_human_user(on.organization)
        projects = [a_project(on.organization) for _ in range(4)]
        ordered = [
            a_user_grant(on.human_user, project, created_at=NOW - timedelta(seconds=age))
            for age, project in enumerate(projects)
        ]
        on.save(stranger, *projects, *ordered, a_user_grant(stranger, projects[0]))
        check_order(of_user, ordered)

    def test_user_grants_page_of_user_in_the_same_second(self, on: On, of_user: Fetch[UserGrant]) -> None:
        projects = [a_project(on.organization) for _ in range(5)]
        rows = [a_user_grant(on.human_user, project) for project in projects]
        on.save(*projects, *rows)
        check_ties(of_user, rows)

    def test_user_grants_page_of_user_by_state(self, on: On, of_user: Fetch[UserGrant]) -> None:
        projects = [a_project(on.organization) for _ in range(3)]
        rows = [a_user_grant(on.human_user, project, active=project is not projects[0]) for project in projects]
        on.save(*projects, *rows)
        check_active(of_user, active=rows[1:], inactive=rows[:1])

    def test_user_grants_pages_by_what_stands_at_the_other_end(
        self, on: On, of_user: Fetch[UserGrant], of_project: Fetch[UserGrant]
    ) -> None:
        project = on.project
        zoe = a_human_user(on.organization, user_name="zoe", profile=Profile(given_name="Zoë", family_name="Hopper"))
        saturn = a_project(on.organization, name="Saturn")
        lent = a_project_grant(project, on.other_organization)
        mine, hers, on_loan = (
            a_user_grant(on.human_user, saturn),
            a_user_grant(zoe, project),
            a_user_grant(zoe, project, project_grant_id=lent.id),
        )
        on.save(zoe, saturn, lent, a_user_grant(on.human_user, project), mine, hers, on_loan)
        derived = fetching(
            on.reading, lambda storage, request: storage.user_grants.page_of_project_grant(lent.id, request)
        )
        check_query(of_user, "atur", [mine])
        check_query(of_project, "hopper", [hers, on_loan])
        check_query(of_project, f"zoe@{on.organization.primary_domain}", [hers, on_loan])
        check_query(derived, "ZOE", [on_loan])
        check_query(derived, "ada", [])

    def test_user_grants_searches_find_users_of_the_organizations_that_they_are_within(
        self, on: On, user_grant: UserGrant
    ) -> None:
        lent = a_project_grant(on.project, on.other_organization)
        foreign = a_human_user(on.other_organization, profile=on.human_user.profile)
        derived = a_user_grant(foreign, None, lent, project_id=on.project.id)
        on.save(lent, foreign, derived)
        name, own = on.human_user.profile.family_name, frozenset({on.human_user.organization_id})

        def found(within: frozenset[str] | None, query: str = name) -> set[str]:
            request = PageRequest(query=query, counted=True)
            with on.reading() as storage:
                page = storage.user_grants.page_of_project(on.project.id, request, within=within)
            assert page.total == Total(len(page))
            return {one.id for one in page}

        assert found(None) == {user_grant.id, derived.id}
        assert found(own) == {user_grant.id}
        assert found(frozenset()) == set()
        assert found(frozenset(), "") == {user_grant.id, derived.id}, "only searches are narrowed"
        with on.reading() as storage:
            request = PageRequest(query=name)
            assert storage.user_grants.page_of_project_grant(lent.id, request, within=own).items == ()
            assert storage.user_grants.page_of_project_grant(lent.id, request).items == (derived,)

    def test_user_grants_page_of_project_is_newest_first(self, on: On, of_project: Fetch[UserGrant]) -> None:
        users = [a_human_user(on.organization) for _ in range(4)]
        ordered = [
            a_user_grant(user, on.project, created_at=NOW - timedelta(seconds=age)) for age, user in enumerate(users)
        ]
        other = a_project(on.organization)
        on.save(*users, *ordered, other, a_user_grant(users[0], other))
        check_order(of_project, ordered)

    def test_user_grants_page_of_project_in_the_same_second(self, on: On, of_project: Fetch[UserGrant]) -> None:
        users = [a_human_user(on.organization) for _ in range(5)]
        rows = [a_user_grant(user, on.project) for user in users]
        on.save(*users, *rows)
        check_ties(of_project, rows)

    def test_user_grants_page_of_project_while_rows_come(self, on: On, of_project: Fetch[UserGrant]) -> None:
        users = [a_human_user(on.organization) for _ in range(7)]
        rows = [
            a_user_grant(user, on.project, created_at=NOW - timedelta(seconds=index))
            for index, user in enumerate(users)
        ]
        on.save(*users, *rows[::2])
        check_insertion(of_project, lambda: on.save(*rows[1::2]), rows[::2])

    def test_user_grants_effective_holds_active_grants_of_the_asked_projects(self, on: On) -> None:
        human_user = on.human_user
        wanted, inactive, unasked = (a_project(on.organization) for _ in range(3))
        stranger = a_human_user(on.organization)
        grant = a_user_grant(human_user, wanted)
        on.save(wanted, inactive, unasked, stranger, grant)
        on.save(
            a_user_grant(human_user, inactive, active=False),
            a_user_grant(human_user, unasked),
            a_user_grant(stranger, wanted),
        )
        with on.reading() as storage:
            assert storage.user_grants.effective(human_user.id, frozenset({wanted.id, inactive.id})) == (grant,)
            assert storage.user_grants.effective(human_user.id, frozenset()) == ()
            assert storage.user_grants.effective(an_id(), frozenset({wanted.id})) == ()

    def test_user_grants_effective_is_narrowed_to_the_project_grant(self, on: On, project_grant: ProjectGrant) -> None:
        grant = a_user_grant(
            on.human_user,
            None,
            project_grant,
            project_id=project_grant.project_id,
            roles=frozenset({"reader", "admin"}),
        )
        on.save(grant)
        with on.reading() as storage:
            effective = storage.user_grants.effective(on.human_user.id, frozenset({project_grant.project_id}))
            stored = storage.user_grants.find(grant.id)
        assert effective == (replace(grant, roles=frozenset({"reader"})),)
        assert stored == grant, "the stored grant keeps its roles"

    def test_user_grants_effective_lacks_grants_of_an_inactive_project_grant(
        self, on: On, project_grant: ProjectGrant
    ) -> None:
        on.save(a_user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id))
        with on.writing() as storage:
            storage.project_grants.update(replace(project_grant, active=False, version=2))
        with on.reading() as storage:
            assert storage.user_grants.effective(on.human_user.id, frozenset({project_grant.project_id})) == ()

    def test_user_grants_effective_lacks_grants_of_a_removed_project_grant(
        self, on: On, project_grant: ProjectGrant
    ) -> None:
        on.save(a_user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id))
        with on.writing() as storage:
            storage.project_grants.remove(project_grant.id)
        with on.reading() as storage:
            assert storage.user_grants.effective(on.human_user.id, frozenset({project_grant.project_id})) == ()

    def test_user_grants_page_of_project_grant_is_newest_first(self, on: On, project_grant: ProjectGrant) -> None:
        users = [a_human_user(on.organization) for _ in range(5)]
        derived = [
            a_user_grant(
                user,
                None,
                project_grant,
                project_id=project_grant.project_id,
                created_at=NOW - timedelta(days=age),
                active=age != 1,
            )
            for age, user in enumerate(users)
        ]
        on.save(*users, *reversed(derived), a_user_grant(users[0], on.project))
        fetch = fetching(
            on.reading, lambda storage, request: storage.user_grants.page_of_project_grant(project_grant.id, request)
        )
        check_order(fetch, derived)
        check_active(fetch, active=[derived[0], *derived[2:]], inactive=[derived[1]])
        with on.reading() as storage:
            assert storage.user_grants.page_of_project_grant(an_id()).items == ()
