"""What is demanded of the project store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.permissions import Level, ResourceKey
from identity.domain.projects import Project
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_client_secret,
    a_code,
    a_family,
    a_human_user,
    a_manager,
    a_project,
    a_project_grant,
    a_project_role,
    a_refresh_token,
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
    check_sorts,
    check_totals,
    fetching,
)
from identity.storage.errors import Duplicate, Missing, Stale
from identity.storage.stores.projects import ORDERS


class ProjectContract(ContractBase):
    """Projects belong to an organization, have roles, and take all that hangs on them along."""

    @pytest.fixture
    def projects(self, on: On) -> Fetch[Project]:
        """The list of the projects of ``organization``."""
        organization = on.organization
        return fetching(on.reading, lambda storage, request: storage.projects.page(organization.id, request))

    def test_projects_find_returns_what_was_added(self, on: On) -> None:
        project = a_project(
            on.organization, name="Räket 🚀", assert_roles=True, check_roles=True, active=False, version=3
        )
        on.save(project)
        with on.reading() as storage:
            assert storage.projects.find(project.id) == project
            assert storage.projects.find(an_id()) is None

    def test_projects_a_taken_id_is_refused(self, on: On) -> None:
        project, other_organization = on.project, on.other_organization
        with pytest.raises(Duplicate), on.writing() as storage:
            storage.projects.add(a_project(other_organization, id=project.id))
        with on.reading() as storage:
            assert storage.projects.find(project.id) == project

    def test_projects_a_project_needs_its_organization(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.projects.add(a_project())

    def test_projects_update_replaces_the_value(self, on: On) -> None:
        changed = replace(
            on.project,
            name="Rocket II",
            assert_roles=True,
            check_roles=True,
            active=False,
            changed_at=on.project.changed_at + timedelta(seconds=1),
            version=2,
        )
        with on.writing() as storage:
            storage.projects.update(changed)
        with on.reading() as storage:
            assert storage.projects.find(on.project.id) == changed

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_projects_update_of_another_version_is_stale(self, on: On, version: int) -> None:
        project = on.project
        with pytest.raises(Stale), on.writing() as storage:
            storage.projects.update(replace(project, name="Lost", version=version))
        with on.reading() as storage:
            assert storage.projects.find(project.id) == project

    def test_projects_update_of_an_unknown_project(self, on: On) -> None:
        organization = on.organization
        with pytest.raises(Missing), on.writing() as storage:
            storage.projects.update(a_project(organization, version=2))

    def test_projects_remove_of_an_unknown_project(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.projects.remove(an_id())

    def test_projects_remove_takes_everything_along(self, on: On) -> None:
        project, human_user = on.project, on.human_user
        role, application, grant = (
            a_project_role(project),
            an_application(project),
            a_project_grant(project, on.other_organization),
        )
        stranger = a_human_user(on.other_organization)
        own_grant, derived_grant = a_user_grant(human_user, project), a_user_grant(stranger, project, grant)
        manager = a_manager(human_user, ResourceKey(Level.PROJECT, project.id))
        grant_manager = a_manager(stranger, ResourceKey(Level.PROJECT_GRANT, grant.id))
        family = a_family(human_user, application)
        code, token, refresh = a_code(family), an_access_token(human_user, application, family), a_refresh_token(family)
        on.save(role, application, grant, stranger, own_grant, derived_grant, manager, grant_manager)
        on.save(family, code, token, refresh)
        with on.writing() as storage:
            storage.applications.add_secret(application.id, a_client_secret())
        with on.writing() as storage:
            storage.projects.remove(project.id)
        with on.reading() as storage:
            assert storage.projects.find(project.id) is None
            assert storage.projects.roles(project.id) == ()
            assert storage.applications.find(application.id) is None
            assert storage.applications.secrets(application.id) == ()
            assert storage.project_grants.find(grant.id) is None
            assert storage.user_grants.find(own_grant.id) is None
            assert storage.user_grants.find(derived_grant.id) is None
            assert storage.managers.find(manager.id) is None
            assert storage.managers.find(grant_manager.id) is None
            assert storage.tokens.find_family(family.id) is None
            assert storage.tokens.find_access(token.digest) is None
            assert storage.tokens.find_refresh(refresh.digest) is None
            assert storage.users.find(human_user.id) == human_user, "users stay"

    def test_projects_remove_leaves_other_projects_alone(self, on: On) -> None:
        project = on.project
        other = a_project(on.organization)
        application, role = an_application(other), a_project_role(other)
        on.save(other, application, role)
        with on.writing() as storage:
            storage.projects.remove(project.id)
        with on.reading() as storage:
            assert storage.projects.find(other.id) == other
            assert storage.applications.find(application.id) == application
            assert storage.projects.roles(other.id) == (role,)

    def test_projects_page_shows_the_organization_alone(self, on: On, projects: Fetch[Project]) -> None:
        on.save(a_project(on.other_organization))
        check_order(projects, [on.project])

    def test_projects_page_is_ordered_by_name_then_id(self, on: On, projects: Fetch[Project]) -> None:
        first, *twins, last = (
            a_project(on.organization, name=name) for name in ("alpha", "Same", "same", "SAME", "zeta")
        )
        twins.sort(key=lambda each: each.id)
        on.save(last, *reversed(twins), first)
        check_order(projects, [first, *twins, last])

    def test_projects_page_while_rows_come(self, on: On, projects: Fetch[Project]) -> None:
        rows = [a_project(on.organization, name=name) for name in ("b", "d", "f", "h")]
        on.save(*rows)
        more = [a_project(on.organization, name=name) for name in ("a", "c", "e", "i")]
        check_insertion(projects, lambda: on.save(*more), rows)

    def test_projects_page_by_state(self, on: On, projects: Fetch[Project]) -> None:
        active, inactive = (
            [a_project(on.organization), a_project(on.organization)],
            [a_project(on.organization, active=False)],
        )
        on.save(*active, *inactive)
        check_active(projects, active=active, inactive=inactive)

    def test_projects_page_sorted_by_each_of_its_orders(self, on: On, projects: Fetch[Project]) -> None:
        for name, seconds, active in (("Beta-all", 2, True), ("alpha-all", 3, False), ("gamma-all", 2, True)):
            on.save(a_project(on.organization, name=name, created_at=NOW + timedelta(seconds=seconds), active=active))
        check_sorts(projects, ORDERS, "ALL")
        check_totals(projects, rows=3, active=2)

    def test_projects_page_by_any_part_of_the_name(self, on: On, projects: Fetch[Project]) -> None:
        rocket, straight, percent = (a_project(on.organization, name=name) for name in ("Rocket", "Straße", "%"))
        on.save(rocket, straight, percent, a_project(on.other_organization, name="Rocket"))
        check_query(projects, "ROCK", [rocket])
        check_query(projects, "strass", [straight])
        check_query(projects, "%", [percent])
        check_query(projects, "ocket", [rocket])
        check_query(projects, "pocket", [])
        check_query(projects, straight.id, [straight])

    def test_projects_audience_holds_what_the_organization_owns_or_was_granted(self, on: On) -> None:
        organization = on.organization
        own, granted, foreign = (
            a_project(organization),
            a_project(on.other_organization),
            a_project(on.other_organization),
        )
        on.save(own, granted, foreign, a_project_grant(granted, organization))
        asked = frozenset({own.id, granted.id, foreign.id, an_id()})
        with on.reading() as storage:
            assert storage.projects.audience(asked, organization.id) == {own.id, granted.id}
            assert storage.projects.audience(frozenset({own.id}), organization.id) == {own.id}
            assert storage.projects.audience(frozenset(), organization.id) == frozenset()

    def test_projects_audience_lacks_inactive_projects(self, on: On) -> None:
        project = a_project(on.organization, active=False)
        on.save(project)
        with on.reading() as storage:
            assert storage.projects.audience(frozenset({project.id}), on.organization.id) == frozenset()

    def test_projects_audience_lacks_projects_of_inactive_organizations(self, on: On) -> None:
        closed = an_organization(active=False)
        project = a_project(closed)
        on.save(closed, project, a_project_grant(project, on.organization))
        with on.reading() as storage:
            assert storage.projects.audience(frozenset({project.id}), on.organization.id) == frozenset()

    def test_projects_audience_lacks_projects_whose_grant_is_inactive(self, on: On) -> None:
        project = a_project(on.other_organization)
        on.save(project, a_project_grant(project, on.organization, active=False))
        with on.reading() as storage:
            assert storage.projects.audience(frozenset({project.id}), on.organization.id) == frozenset()

    def test_projects_audience_lacks_projects_whose_grant_came_later(self, on: On) -> None:
        organization = on.organization
        own, project = a_project(organization), a_project(on.other_organization)
        grant = a_project_grant(project, organization)
        on.save(own, project, grant)
        asked, at = frozenset({own.id, project.id}), grant.created_at
        with on.reading() as storage:
            assert storage.projects.audience(asked, organization.id, at) == asked
            assert storage.projects.audience(asked, organization.id, at - timedelta(seconds=1)) == {own.id}

    def test_projects_roles_are_ordered_by_key(self, on: On) -> None:
        ordered = [a_project_role(on.project, key=key, group="Größe") for key in ("admin", "reader", "writer")]
        on.save(*reversed(ordered))
        with on.reading() as storage:
            assert storage.projects.roles(on.project.id) == tuple(ordered)
            assert storage.projects.roles(an_id()) == ()

    def test_projects_a_taken_role_key_is_refused(self, on: On) -> None:
        on.save(a_project_role(on.project, key="reader"))
        with pytest.raises(Duplicate) as refusal, on.writing() as storage:
            storage.projects.add_role(a_project_role(on.project, key="reader"))
        assert refusal.value.field == "key"

    def test_projects_two_projects_may_have_the_same_role_key(self, on: On) -> None:
        other = a_project(on.organization)
        here, there = a_project_role(on.project, key="reader"), a_project_role(other, key="reader")
        on.save(other, here, there)
        with on.reading() as storage:
            assert storage.projects.roles(on.project.id) == (here,)
            assert storage.projects.roles(other.id) == (there,)

    def test_projects_a_role_needs_its_project(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.projects.add_role(a_project_role())

    def test_projects_update_role(self, on: On) -> None:
        other = a_project(on.organization)
        role, twin = a_project_role(on.project, key="reader"), a_project_role(other, key="reader")
        on.save(other, role, twin)
        changed = replace(role, display_name="Leser", group="Gäste", version=2)
        with on.writing() as storage:
            storage.projects.update_role(changed)
        with on.reading() as storage:
            assert storage.projects.roles(on.project.id) == (changed,)
            assert storage.projects.roles(other.id) == (twin,), "the role of another project is another role"

    def test_projects_update_of_a_stale_role(self, on: On) -> None:
        role = a_project_role(on.project, key="reader")
        on.save(role)
        for version in (1, 3):
            with pytest.raises(Stale), on.writing() as storage:
                storage.projects.update_role(replace(role, display_name="Leser", version=version))
        with on.reading() as storage:
            assert storage.projects.roles(on.project.id) == (role,)

    def test_projects_update_of_an_unknown_role(self, on: On) -> None:
        project = on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.projects.update_role(replace(a_project_role(project), version=2))

    def test_projects_remove_of_an_unknown_role(self, on: On) -> None:
        project = on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.projects.remove_role(project.id, "nobody")

    def test_projects_remove_role_takes_it_out_of_grants(self, on: On) -> None:
        project = on.project
        reader, writer = a_project_role(project, key="reader"), a_project_role(project, key="writer")
        grant = a_project_grant(project, on.other_organization, roles=frozenset({"reader", "writer"}))
        user_grant = a_user_grant(on.human_user, project, roles=frozenset({"reader", "writer"}))
        on.save(reader, writer, grant, user_grant)
        with on.writing() as storage:
            storage.projects.remove_role(project.id, "writer")
        with on.reading() as storage:
            assert storage.projects.roles(project.id) == (reader,)
            narrowed_grant = storage.project_grants.find(grant.id)
            narrowed_user_grant = storage.user_grants.find(user_grant.id)
        assert narrowed_grant is not None
        assert narrowed_grant.roles == {"reader"}
        assert narrowed_user_grant is not None
        assert narrowed_user_grant.roles == {"reader"}

    def test_projects_remove_role_leaves_other_projects_alone(self, on: On) -> None:
        other = a_project(on.organization)
        role = a_project_role(other, key="writer")
        user_grant = a_user_grant(on.human_user, other, roles=frozenset({"writer"}))
        on.save(other, a_project_role(on.project, key="writer"), role, user_grant)
        with on.writing() as storage:
            storage.projects.remove_role(on.project.id, "writer")
        with on.reading() as storage:
            assert storage.projects.roles(other.id) == (role,)
            assert storage.user_grants.find(user_grant.id) == user_grant

    def test_projects_find_many(self, on: On) -> None:
        project = on.project
        other = a_project(on.other_organization)
        on.save(other)
        with on.reading() as storage:
            assert storage.projects.find_many([other.id, an_id(), project.id]) == {project.id: project, other.id: other}
            assert storage.projects.find_many(()) == {}

    def test_projects_counts_of_applications_and_roles(self, on: On) -> None:
        project = on.project
        other, empty = a_project(on.other_organization), a_project(on.other_organization)
        on.save(other, empty, *(an_application(project) for _ in range(3)), an_application(other))
        on.save(*(a_project_role(project) for _ in range(2)))
        with on.reading() as storage:
            counts = storage.projects.counts([project.id, other.id, empty.id, an_id()])
            assert counts == {project.id: (3, 2), other.id: (1, 0), empty.id: (0, 0)}
            assert storage.projects.counts(()) == {}
