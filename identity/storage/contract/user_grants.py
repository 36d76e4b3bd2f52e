"""Contract of the user grant store."""

from dataclasses import replace
from functools import partial

import pytest

from identity.domain.projects import ProjectGrant, UserGrant
from identity.domain.users import Profile
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.page_checks import check_query
from identity.storage.paging import PageRequest, RowTotal


class UserGrantContract(ContractBase):
    """A user holds roles in a project once directly and once through each project grant."""

    @pytest.fixture
    def user_grant(self, on: StorageHarness) -> UserGrant:
        """The role reader in ``project``, granted to ``human_user``."""
        return on.store_value(make.user_grant(on.human_user, on.project))

    @pytest.fixture
    def project_grant(self, on: StorageHarness) -> ProjectGrant:
        """A project of ``other_organization``, granted to ``organization`` with the roles reader and writer."""
        project = make.project(on.other_organization)
        grant = make.project_grant(project, on.organization, roles=frozenset({"reader", "writer"}))
        on.store(project, grant)
        return grant

    def test_user_grants_a_direct_and_a_derived_grant_stand_side_by_side(
        self, on: StorageHarness, project_grant: ProjectGrant
    ) -> None:
        derived = make.user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id)
        direct = replace(derived, id=make_id(), project_grant_id=None)
        on.store(direct, derived)
        assert on.read.user_grants.find(direct.id) == direct
        assert on.read.user_grants.find(derived.id) == derived

    def test_user_grants_pages_by_what_stands_at_the_other_end(self, on: StorageHarness) -> None:
        zoe = make.human_user(on.organization, user_name="zoe", profile=Profile(given_name="Zoë", family_name="Hopper"))
        saturn = make.project(on.organization, name="Saturn")
        lent = make.project_grant(on.project, on.other_organization)
        mine, hers = make.user_grant(on.human_user, saturn), make.user_grant(zoe, on.project)
        on_loan = make.user_grant(zoe, on.project, project_grant_id=lent.id)
        on.store(zoe, saturn, lent, make.user_grant(on.human_user, on.project), mine, hers, on_loan)
        of_user = partial(on.read.user_grants.page, "user_id", on.human_user.id)
        of_project = partial(on.read.user_grants.page, "project_id", on.project.id)
        derived = partial(on.read.user_grants.page, "project_grant_id", lent.id)
        check_query(of_user, "atur", [mine])
        check_query(of_project, "hopper", [hers, on_loan])
        check_query(of_project, f"zoe@{on.organization.primary_domain}", [hers, on_loan])
        check_query(derived, "ZOE", [on_loan])
        check_query(derived, "ada", [])

    def test_user_grants_searches_find_users_of_the_organizations_that_they_are_within(
        self, on: StorageHarness, user_grant: UserGrant
    ) -> None:
        lent = make.project_grant(on.project, on.other_organization)
        foreign = make.human_user(on.other_organization, profile=on.human_user.profile)
        derived = make.user_grant(foreign, None, lent, project_id=on.project.id)
        on.store(lent, foreign, derived)
        name, organization_ids = on.human_user.profile.family_name, frozenset({on.human_user.organization_id})

        def found(within: frozenset[str] | None, query: str = name) -> set[str]:
            request = PageRequest(query=query, with_total=True)
            page = on.read.user_grants.page("project_id", on.project.id, request, organization_ids=within)
            assert page.total == RowTotal(len(page))
            return {user_grant.id for user_grant in page}

        assert found(None) == {user_grant.id, derived.id}
        assert found(organization_ids) == {user_grant.id}
        assert found(frozenset()) == set()
        assert found(frozenset(), "") == {user_grant.id, derived.id}, "only searches are narrowed"
        request = PageRequest(query=name)
        assert (
            on.read.user_grants.page("project_grant_id", lent.id, request, organization_ids=organization_ids).items
            == ()
        )
        assert on.read.user_grants.page("project_grant_id", lent.id, request).items == (derived,)

    def test_user_grants_effective_holds_active_grants_of_the_asked_projects(self, on: StorageHarness) -> None:
        project, inactive, unasked = (make.project(on.organization) for _ in range(3))
        stranger = make.human_user(on.organization)
        grant = make.user_grant(on.human_user, project)
        on.store(project, inactive, unasked, stranger, grant)
        on.store(
            make.user_grant(on.human_user, inactive, active=False),
            make.user_grant(on.human_user, unasked),
            make.user_grant(stranger, project),
        )
        assert on.read.user_grants.list_effective(on.human_user.id, frozenset({project.id, inactive.id}), NOW) == (
            grant,
        )
        assert on.read.user_grants.list_effective(on.human_user.id, frozenset(), NOW) == ()
        assert on.read.user_grants.list_effective(make_id(), frozenset({project.id}), NOW) == ()

    def test_user_grants_effective_is_narrowed_to_the_project_grant(
        self, on: StorageHarness, project_grant: ProjectGrant
    ) -> None:
        grant = on.store_value(
            make.user_grant(
                on.human_user,
                None,
                project_grant,
                project_id=project_grant.project_id,
                roles=frozenset({"reader", "admin"}),
            )
        )
        effective = on.read.user_grants.list_effective(on.human_user.id, frozenset({project_grant.project_id}), NOW)
        stored = on.read.user_grants.find(grant.id)
        assert effective == (replace(grant, roles=frozenset({"reader"})),)
        assert stored == grant, "the stored grant keeps its roles"

    def test_user_grants_effective_lacks_grants_of_an_inactive_project_grant(
        self, on: StorageHarness, project_grant: ProjectGrant
    ) -> None:
        on.store(make.user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id))
        on.write.project_grants.update(replace(project_grant, active=False, version=2))
        assert on.read.user_grants.list_effective(on.human_user.id, frozenset({project_grant.project_id}), NOW) == ()

    def test_user_grants_effective_lacks_grants_that_have_ended(self, on: StorageHarness) -> None:
        grant = on.store_value(make.user_grant(on.human_user, on.project, until=NOW + SECOND))
        projects = frozenset({on.project.id})
        assert on.read.user_grants.list_effective(on.human_user.id, projects, NOW) == (grant,)
        assert on.read.user_grants.list_effective(on.human_user.id, projects, NOW + SECOND) == ()

    def test_user_grants_effective_end_with_their_project_grant(
        self, on: StorageHarness, project_grant: ProjectGrant
    ) -> None:
        on.write.project_grants.update(replace(project_grant, until=NOW + DAY, version=2))
        grant = make.user_grant(on.human_user, None, project_grant, project_id=project_grant.project_id)
        shorter = make.human_user(on.organization)
        on.store(grant, shorter)
        on.store(make.user_grant(shorter, None, project_grant, project_id=project_grant.project_id, until=NOW + SECOND))
        projects, read = frozenset({project_grant.project_id}), on.read.user_grants.list_effective
        assert read(on.human_user.id, projects, NOW) == (replace(grant, until=NOW + DAY),)
        assert read(on.human_user.id, projects, NOW + DAY) == ()
        assert [item.until for item in read(shorter.id, projects, NOW)] == [NOW + SECOND]

    def test_user_grants_ending_are_listed_soonest_first(self, on: StorageHarness, user_grant: UserGrant) -> None:
        projects = [make.project(on.organization) for _ in range(3)]
        late, soon, past = (
            make.user_grant(on.human_user, project, until=NOW + days * DAY)
            for project, days in zip(projects, (7, 1, -1), strict=True)
        )
        on.store(*projects, late, soon, past)
        read = on.read.user_grants.list_ending
        assert read(NOW, NOW + 7 * DAY, 10) == (soon, late)
        assert read(NOW, NOW + 7 * DAY, 10, organization_id=on.organization.id) == (soon, late)
        assert read(NOW, NOW + 7 * DAY, 10, organization_id=on.other_organization.id) == ()
        assert read(NOW, NOW + 6 * DAY, 10) == (soon,)
        assert read(None, NOW + 7 * DAY, 2) == (past, soon)
