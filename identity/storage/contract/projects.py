"""Contract of the project store."""

from dataclasses import replace

import pytest

from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.errors import RowNotFound, StaleRow


class ProjectContract(ContractBase):
    """Projects belong to an organization, have roles, and are deleted with everything in them."""

    def test_projects_audience_holds_what_the_organization_owns_or_was_granted(self, on: StorageHarness) -> None:
        project, granted = make.project(on.organization), make.project(on.other_organization)
        foreign = make.project(on.other_organization)
        on.store(project, granted, foreign, make.project_grant(granted, on.organization))
        project_ids = frozenset({project.id, granted.id, foreign.id, make_id()})
        assert on.read.projects.list_audience(project_ids, on.organization.id, NOW) == {project.id, granted.id}
        assert on.read.projects.list_audience(frozenset({project.id}), on.organization.id, NOW) == {project.id}
        assert on.read.projects.list_audience(frozenset(), on.organization.id, NOW) == frozenset()

    @pytest.mark.parametrize("inactive", ["project", "organization", "grant"])
    def test_projects_audience_lacks_what_is_inactive(self, on: StorageHarness, inactive: str) -> None:
        owner = make.organization(active=inactive != "organization")
        owned, granted = make.project(on.organization, active=False), make.project(owner, active=inactive != "project")
        on.store(owner, owned, granted, make.project_grant(granted, on.organization, active=inactive != "grant"))
        assert on.read.projects.list_audience(frozenset({owned.id, granted.id}), on.organization.id, NOW) == frozenset()

    def test_projects_audience_lacks_projects_whose_grant_has_ended(self, on: StorageHarness) -> None:
        project = make.project(on.other_organization)
        on.store(project, make.project_grant(project, on.organization, until=NOW + DAY))
        project_ids, read = frozenset({project.id}), on.read.projects.list_audience
        assert read(project_ids, on.organization.id, NOW + DAY - SECOND) == project_ids
        assert read(project_ids, on.organization.id, NOW + DAY) == frozenset()

    def test_projects_audience_lacks_projects_whose_grant_came_later(self, on: StorageHarness) -> None:
        owned, project = make.project(on.organization), make.project(on.other_organization)
        grant = make.project_grant(project, on.organization)
        on.store(owned, project, grant)
        project_ids, at = frozenset({owned.id, project.id}), grant.created_at
        assert on.read.projects.list_audience(project_ids, on.organization.id, NOW, at) == project_ids
        assert on.read.projects.list_audience(project_ids, on.organization.id, NOW, at - SECOND) == {owned.id}

    def test_projects_roles_are_ordered_by_key(self, on: StorageHarness) -> None:
        ordered = [make.project_role(on.project, key=key, group="Größe") for key in ("admin", "reader", "writer")]
        on.store(*reversed(ordered))
        assert on.read.projects.list_roles(on.project.id) == tuple(ordered)
        assert on.read.projects.list_roles(make_id()) == ()

    def test_projects_two_projects_may_have_the_same_role_key(self, on: StorageHarness) -> None:
        project = make.project(on.organization)
        project_role, role = make.project_role(on.project, key="reader"), make.project_role(project, key="reader")
        on.store(project, project_role, role)
        assert on.read.projects.list_roles(on.project.id) == (project_role,)
        assert on.read.projects.list_roles(project.id) == (role,)

    def test_projects_update_role(self, on: StorageHarness) -> None:
        project = make.project(on.organization)
        role, twin = make.project_role(on.project, key="reader"), make.project_role(project, key="reader")
        on.store(project, role, twin)
        changed = replace(role, display_name="Leser", group="Gäste", version=2)
        on.write.projects.update_role(changed)
        assert on.read.projects.list_roles(on.project.id) == (changed,)
        assert on.read.projects.list_roles(project.id) == (twin,), "the role of another project is another role"

    def test_projects_update_of_a_stale_role(self, on: StorageHarness) -> None:
        role = on.store_value(make.project_role(on.project, key="reader"))
        for version in (1, 3):
            with pytest.raises(StaleRow):
                on.write.projects.update_role(replace(role, display_name="Leser", version=version))
        assert on.read.projects.list_roles(on.project.id) == (role,)

    def test_projects_update_of_an_unknown_role(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.write.projects.update_role(replace(make.project_role(on.project), version=2))

    def test_projects_remove_of_an_unknown_role(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.write.projects.delete_role(on.project.id, "nobody")

    def test_projects_remove_role_takes_it_out_of_grants(self, on: StorageHarness) -> None:
        reader, writer = make.project_role(on.project, key="reader"), make.project_role(on.project, key="writer")
        grant = make.project_grant(on.project, on.other_organization, roles=frozenset({"reader", "writer"}))
        user_grant = make.user_grant(on.human_user, on.project, roles=frozenset({"reader", "writer"}))
        on.store(reader, writer, grant, user_grant)
        on.write.projects.delete_role(on.project.id, "writer")
        assert on.read.projects.list_roles(on.project.id) == (reader,)
        assert require_found(on.read.project_grants.find(grant.id)).roles == {"reader"}
        assert require_found(on.read.user_grants.find(user_grant.id)).roles == {"reader"}

    def test_projects_remove_role_leaves_other_projects_alone(self, on: StorageHarness) -> None:
        project = make.project(on.organization)
        role = make.project_role(project, key="writer")
        user_grant = make.user_grant(on.human_user, project, roles=frozenset({"writer"}))
        on.store(project, make.project_role(on.project, key="writer"), role, user_grant)
        on.write.projects.delete_role(on.project.id, "writer")
        assert on.read.projects.list_roles(project.id) == (role,)
        assert on.read.user_grants.find(user_grant.id) == user_grant

    def test_projects_counts_of_applications_and_roles(self, on: StorageHarness) -> None:
        project, empty = make.project(on.other_organization), make.project(on.other_organization)
        on.store(project, empty, *(make.application(on.project) for _ in range(3)), make.application(project))
        on.store(*(make.project_role(on.project) for _ in range(2)))
        counts = on.read.projects.count_children([on.project.id, project.id, empty.id, make_id()])
        assert counts == {on.project.id: (3, 2), project.id: (1, 0), empty.id: (0, 0)}
        assert on.read.projects.count_children(()) == {}
