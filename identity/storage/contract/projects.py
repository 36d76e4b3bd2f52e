"""What is demanded of the project store."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    a_project,
    a_project_grant,
    a_project_role,
    a_user_grant,
    an_application,
    an_id,
    an_organization,
)
from identity.storage.contract.paging import check_query
from identity.storage.errors import Missing, Stale


class ProjectContract(ContractBase):
    """Projects belong to an organization, have roles, and take all that hangs on them along."""

    def test_projects_page_by_any_part_of_the_name(self, on: On) -> None:
        rocket, straight, percent = (a_project(on.organization, name=name) for name in ("Rocket", "Straße", "%"))
        on.save(rocket, straight, percent, a_project(on.other_organization, name="Rocket"))
        check_query(partial(on.read.projects.page, on.organization.id), "ROCK", [rocket])
        check_query(partial(on.read.projects.page, on.organization.id), "strass", [straight])
        check_query(partial(on.read.projects.page, on.organization.id), "%", [percent])
        check_query(partial(on.read.projects.page, on.organization.id), "ocket", [rocket])
        check_query(partial(on.read.projects.page, on.organization.id), "pocket", [])
        check_query(partial(on.read.projects.page, on.organization.id), straight.id, [straight])

    def test_projects_audience_holds_what_the_organization_owns_or_was_granted(self, on: On) -> None:
        own, granted, foreign = (
            a_project(on.organization),
            a_project(on.other_organization),
            a_project(on.other_organization),
        )
        on.save(own, granted, foreign, a_project_grant(granted, on.organization))
        asked = frozenset({own.id, granted.id, foreign.id, an_id()})
        assert on.read.projects.audience(asked, on.organization.id) == {own.id, granted.id}
        assert on.read.projects.audience(frozenset({own.id}), on.organization.id) == {own.id}
        assert on.read.projects.audience(frozenset(), on.organization.id) == frozenset()

    def test_projects_audience_lacks_inactive_projects(self, on: On) -> None:
        project = on.saved(a_project(on.organization, active=False))
        assert on.read.projects.audience(frozenset({project.id}), on.organization.id) == frozenset()

    def test_projects_audience_lacks_projects_of_inactive_organizations(self, on: On) -> None:
        closed = an_organization(active=False)
        project = a_project(closed)
        on.save(closed, project, a_project_grant(project, on.organization))
        assert on.read.projects.audience(frozenset({project.id}), on.organization.id) == frozenset()

    def test_projects_audience_lacks_projects_whose_grant_is_inactive(self, on: On) -> None:
        project = a_project(on.other_organization)
        on.save(project, a_project_grant(project, on.organization, active=False))
        assert on.read.projects.audience(frozenset({project.id}), on.organization.id) == frozenset()

    def test_projects_audience_lacks_projects_whose_grant_came_later(self, on: On) -> None:
        own, project = a_project(on.organization), a_project(on.other_organization)
        grant = a_project_grant(project, on.organization)
        on.save(own, project, grant)
        asked, at = frozenset({own.id, project.id}), grant.created_at
        assert on.read.projects.audience(asked, on.organization.id, at) == asked
        assert on.read.projects.audience(asked, on.organization.id, at - timedelta(seconds=1)) == {own.id}

    def test_projects_roles_are_ordered_by_key(self, on: On) -> None:
        ordered = [a_project_role(on.project, key=key, group="Größe") for key in ("admin", "reader", "writer")]
        on.save(*reversed(ordered))
        assert on.read.projects.roles(on.project.id) == tuple(ordered)
        assert on.read.projects.roles(an_id()) == ()

    def test_projects_two_projects_may_have_the_same_role_key(self, on: On) -> None:
        other = a_project(on.organization)
        here, there = a_project_role(on.project, key="reader"), a_project_role(other, key="reader")
        on.save(other, here, there)
        assert on.read.projects.roles(on.project.id) == (here,)
        assert on.read.projects.roles(other.id) == (there,)

    def test_projects_update_role(self, on: On) -> None:
        other = a_project(on.organization)
        role, twin = a_project_role(on.project, key="reader"), a_project_role(other, key="reader")
        on.save(other, role, twin)
        changed = replace(role, display_name="Leser", group="Gäste", version=2)
        on.write.projects.update_role(changed)
        assert on.read.projects.roles(on.project.id) == (changed,)
        assert on.read.projects.roles(other.id) == (twin,), "the role of another project is another role"

    def test_projects_update_of_a_stale_role(self, on: On) -> None:
        role = on.saved(a_project_role(on.project, key="reader"))
        for version in (1, 3):
            with pytest.raises(Stale):
                on.write.projects.update_role(replace(role, display_name="Leser", version=version))
        assert on.read.projects.roles(on.project.id) == (role,)

    def test_projects_update_of_an_unknown_role(self, on: On) -> None:
        with pytest.raises(Missing):
            on.write.projects.update_role(replace(a_project_role(on.project), version=2))

    def test_projects_remove_of_an_unknown_role(self, on: On) -> None:
        with pytest.raises(Missing):
            on.write.projects.remove_role(on.project.id, "nobody")

    def test_projects_remove_role_takes_it_out_of_grants(self, on: On) -> None:
        reader, writer = a_project_role(on.project, key="reader"), a_project_role(on.project, key="writer")
        grant = a_project_grant(on.project, on.other_organization, roles=frozenset({"reader", "writer"}))
        user_grant = a_user_grant(on.human_user, on.project, roles=frozenset({"reader", "writer"}))
        on.save(reader, writer, grant, user_grant)
        on.write.projects.remove_role(on.project.id, "writer")
        assert on.read.projects.roles(on.project.id) == (reader,)
        narrowed_grant = on.read.project_grants.find(grant.id)
        narrowed_user_grant = on.read.user_grants.find(user_grant.id)
        assert narrowed_grant is not None
        assert narrowed_grant.roles == {"reader"}
        assert narrowed_user_grant is not None
        assert narrowed_user_grant.roles == {"reader"}

    def test_projects_remove_role_leaves_other_projects_alone(self, on: On) -> None:
        other = a_project(on.organization)
        role = a_project_role(other, key="writer")
        user_grant = a_user_grant(on.human_user, other, roles=frozenset({"writer"}))
        on.save(other, a_project_role(on.project, key="writer"), role, user_grant)
        on.write.projects.remove_role(on.project.id, "writer")
        assert on.read.projects.roles(other.id) == (role,)
        assert on.read.user_grants.find(user_grant.id) == user_grant

    def test_projects_counts_of_applications_and_roles(self, on: On) -> None:
        other, empty = a_project(on.other_organization), a_project(on.other_organization)
        on.save(other, empty, *(an_application(on.project) for _ in range(3)), an_application(other))
        on.save(*(a_project_role(on.project) for _ in range(2)))
        counts = on.read.projects.counts([on.project.id, other.id, empty.id, an_id()])
        assert counts == {on.project.id: (3, 2), other.id: (1, 0), empty.id: (0, 0)}
        assert on.read.projects.counts(()) == {}
