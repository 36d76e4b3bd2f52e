"""Contract of the group stores, and of the roles that members have through groups."""

from dataclasses import replace
from typing import Any

import pytest

from identity.domain.groups import Group
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.domain.users import Profile
from identity.storage.contract import factories as make
from identity.storage.contract.factories import DAY, NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.contract.page_checks import check_query
from identity.storage.errors import DuplicateValue


class GroupContract(ContractBase):
    """Members have the roles of their active groups besides their own, until the first of all ends."""

    @pytest.fixture
    def group(self, on: StorageHarness) -> Group:
        return on.store_value(make.group(on.organization, name="Büro"))

    def test_groups_names_are_unique_in_their_organization_whatever_their_case(
        self, on: StorageHarness, group: Group
    ) -> None:
        on.store(make.group(on.other_organization, name="büro"))
        with on.transaction() as storage, pytest.raises(DuplicateValue) as refusal:
            storage.groups.add(make.group(on.organization, name="büro"))
        assert refusal.value.field == "name"

    def test_groups_members_grants_and_managers_are_unique_in_their_group(
        self, on: StorageHarness, group: Group
    ) -> None:
        on.store(
            make.group_member(group, on.human_user), make.group_grant(group, on.project), make.group_manager(group)
        )
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue, match="user_id"):
                storage.group_members.add(make.group_member(group, on.human_user))
            with pytest.raises(DuplicateValue, match="project_id"):
                storage.group_grants.add(make.group_grant(group, on.project))
            with pytest.raises(DuplicateValue, match="resource_id"):
                storage.group_managers.add(make.group_manager(group))

    def test_groups_are_searched_by_what_they_are_about(self, on: StorageHarness, group: Group) -> None:
        zoe = make.human_user(on.organization, user_name="zoe", profile=Profile(given_name="Zoë", family_name="Hopper"))
        saturn, other = make.project(on.organization, name="Saturn"), make.group(on.organization, name="Storage")
        hers, grant = make.group_member(group, zoe), make.group_grant(group, saturn)
        on.store(zoe, saturn, other, hers, grant)
        on.store(make.group_member(group, on.human_user), make.group_grant(group, on.project))
        check_query(lambda request: on.read.groups.page(on.organization.id, request), "bür", [group])
        check_query(lambda request: on.read.group_members.page(group.id, request), "hopper", [hers])
        check_query(lambda request: on.read.group_grants.page(group.id, request), "atur", [grant])

    def test_groups_of_a_user_are_listed_by_name_and_members_are_counted(
        self, on: StorageHarness, group: Group
    ) -> None:
        first, empty = make.group(on.organization, name="Archive", active=False), make.group(on.organization)
        ended = make.group_member(first, on.human_user, until=NOW - DAY)
        member, robot = make.group_member(group, on.human_user), make.group_member(group, on.service_user)
        on.store(first, empty, ended, member, robot)
        assert on.read.groups.list_of_user(on.human_user.id) == ((first, ended), (group, member))
        assert on.read.groups.list_of_user(make_id()) == ()
        ids = [first.id, group.id, empty.id]
        assert dict(on.read.groups.count_members(ids)) == {first.id: 1, group.id: 2}
        assert dict(on.read.groups.count_members(())) == {}

    def test_groups_give_their_project_roles_to_each_member(self, on: StorageHarness, group: Group) -> None:
        direct = make.user_grant(on.human_user, on.project, created_at=NOW + SECOND)
        member, grant = make.group_member(group, on.human_user), make.group_grant(group, on.project)
        unasked = make.project(on.organization)
        on.store(direct, member, grant, unasked, make.group_grant(group, unasked))
        on.store(make.group_member(group, on.service_user, until=NOW + DAY))
        read, projects = on.read.user_grants.list_effective, frozenset({on.project.id})
        assert read(on.human_user.id, projects, NOW) == (direct, grant.for_member(member))
        assert [item.until for item in read(on.service_user.id, projects, NOW)] == [NOW + DAY]
        assert read(on.service_user.id, projects, NOW + DAY) == ()
        assert read(make_id(), projects, NOW) == ()
        on.write.groups.update(replace(group, active=False, version=2))
        assert on.read.user_grants.list_effective(on.human_user.id, projects, NOW) == (direct,)

    def test_groups_project_roles_end_with_the_grant_or_the_project_grant_and_are_narrowed_by_it(
        self, on: StorageHarness, group: Group
    ) -> None:
        lent, short = make.project(on.other_organization), make.project(on.organization)
        project_grant = make.project_grant(lent, on.organization, roles=frozenset({"reader"}), until=NOW + 2 * DAY)
        grant = make.group_grant(group, lent, project_grant, roles=frozenset({"reader", "admin"}))
        on.store(lent, short, project_grant, grant, make.group_grant(group, short, until=NOW + DAY))
        on.store(make.group_member(group, on.human_user, until=NOW + 3 * DAY))
        read, projects = on.read.user_grants.list_effective, frozenset({lent.id, short.id})
        found = {item.project_id: (item.roles, item.until) for item in read(on.human_user.id, projects, NOW)}
        reader = frozenset({"reader"})
        assert found == {lent.id: (reader, NOW + 2 * DAY), short.id: (reader, NOW + DAY)}
        assert {item.project_id for item in read(on.human_user.id, projects, NOW + DAY)} == {lent.id}
        assert read(on.human_user.id, projects, NOW + 2 * DAY) == ()
        on.write.project_grants.update(replace(project_grant, active=False, version=2))
        left = on.read.user_grants.list_effective(on.human_user.id, projects, NOW)
        assert {item.project_id for item in left} == {short.id}

    def test_groups_give_their_manager_roles_to_each_member(self, on: StorageHarness, group: Group) -> None:
        direct = make.manager(on.human_user, created_at=NOW + SECOND)
        project = make.project(on.other_organization)
        project_grant = make.project_grant(project, on.organization, until=NOW + 2 * DAY)
        member = make.group_member(group, on.human_user, until=NOW + 3 * DAY)
        of_organization = make.group_manager(group)
        at_grant = make.group_manager(
            group, ResourceKey(ManagerLevel.PROJECT_GRANT, project_grant.id), created_at=NOW - SECOND
        )
        on.store(direct, project, project_grant, member, of_organization, at_grant)
        through_group = (
            of_organization.for_member(member, on.organization.id),
            replace(at_grant.for_member(member, on.other_organization.id), until=NOW + 2 * DAY),
        )
        assert set(on.read.managers.list_effective(on.human_user.id, NOW)) == {direct, *through_group}
        of_users = on.read.managers.list_for_users_of_organization
        assert set(of_users(on.organization.id, NOW)) == {direct, *through_group}
        assert of_users(on.other_organization.id, NOW) == ()
        assert on.read.managers.list_for_user(on.human_user.id) == (direct,)
        later = NOW + 2 * DAY
        assert set(on.read.managers.list_effective(on.human_user.id, later)) == {direct, through_group[0]}
        assert on.read.managers.list_effective(on.human_user.id, NOW + 3 * DAY) == (direct,)
        on.write.groups.update(replace(group, active=False, version=2))
        assert on.read.managers.list_effective(on.human_user.id, NOW) == (direct,)
        assert on.read.managers.list_for_users_of_organization(on.organization.id, NOW) == (direct,)

    def test_groups_lose_a_project_role_that_is_removed(self, on: StorageHarness, group: Group) -> None:
        role = on.store_value(make.project_role(on.project))
        grant = on.store_value(make.group_grant(group, on.project, roles=frozenset({role.key, "reader"})))
        on.write.projects.delete_role(on.project.id, role.key)
        assert require_found(on.read.group_grants.find(grant.id)).roles == {"reader"}

    def test_groups_lose_what_is_about_a_removed_project_or_project_grant(
        self, on: StorageHarness, group: Group
    ) -> None:
        lent = make.project(on.other_organization)
        project_grant = make.project_grant(lent, on.organization)
        derived = make.group_grant(group, lent, project_grant)
        at_grant = make.group_manager(group, ResourceKey(ManagerLevel.PROJECT_GRANT, project_grant.id))
        direct = make.group_grant(group, on.project)
        at_project = make.group_manager(group, ResourceKey(ManagerLevel.PROJECT, on.project.id))
        on.store(lent, project_grant, derived, at_grant, direct, at_project)
        on.write.project_grants.delete(project_grant.id)
        assert on.read.group_grants.page(group.id).items == (direct,)
        assert on.read.group_managers.page(group.id).items == (at_project,)
        on.write.projects.delete(on.project.id)
        assert on.read.group_grants.page(group.id).items == ()
        assert on.read.group_managers.page(group.id).items == ()

    def test_groups_mappings_are_deleted_with_their_provider_and_take_their_members_along(
        self, on: StorageHarness, group: Group
    ) -> None:
        provider, other = (on.store_value(make.upstream_provider(on.organization)) for _ in range(2))
        first, later = make.group_mapping(group, provider), make.group_mapping(group, provider, created_at=NOW + DAY)
        another = make.group_mapping(on.store_value(make.group(on.organization)), other)
        mapped = make.group_member(group, on.human_user, mapping_id=later.id)
        by_hand = make.group_member(group, on.service_user)
        on.store(later, first, another, mapped, by_hand)
        assert on.read.group_mappings.list_of_provider(provider.id) == (first, later)
        assert on.read.group_mappings.list_of_group(group.id) == (first, later)
        ids = [first.id, later.id, another.id]
        assert dict(on.read.group_mappings.count_members(ids)) == {later.id: 1}
        on.write.upstream_providers.delete(provider.id)
        assert on.read.group_mappings.list_of_group(group.id) == ()
        assert on.read.group_members.page(group.id).items == (by_hand,)
        assert on.read.group_mappings.list_of_provider(other.id) == (another,)

    def test_groups_mappings_of_a_directory_are_listed_by_organization(self, on: StorageHarness, group: Group) -> None:
        provider = on.store_value(make.upstream_provider(on.organization))
        first = make.group_mapping(group, directory="ldap")
        later = make.group_mapping(group, directory="ldap", created_at=NOW + DAY)
        unrelated = (make.group_mapping(group, directory="other"), make.group_mapping(group, provider))
        member = make.group_member(group, on.human_user, mapping_id=first.id)
        on.store(later, first, *unrelated, member)
        assert on.read.group_mappings.list_of_directory(on.organization.id, "ldap") == (first, later)
        assert on.read.group_mappings.list_of_directory(on.other_organization.id, "ldap") == ()
        on.write.group_mappings.delete(first.id)
        assert on.read.group_members.page(group.id).items == ()

    def test_groups_ending_parts_are_listed_soonest_first(self, on: StorageHarness) -> None:
        groups = [on.store_value(make.group(on.organization)) for _ in range(3)]
        ends = [NOW + days * DAY for days in (7, 1, -1)]
        parts: dict[str, list[Any]] = {
            "group_members": [make.group_member(group, on.human_user) for group in groups],
            "group_grants": [make.group_grant(group, on.project) for group in groups],
            "group_managers": [make.group_manager(group) for group in groups],
        }
        for store, values in parts.items():
            late, soon, past = (replace(value, until=end) for value, end in zip(values, ends, strict=True))
            on.store(late, soon, past)
            read = getattr(on.read, store).list_ending
            assert read(NOW, NOW + 7 * DAY, 10) == (soon, late)
            assert read(NOW, NOW + 6 * DAY, 10) == (soon,)
            assert read(None, NOW + 7 * DAY, 2) == (past, soon)
            assert len(read(NOW, NOW + 7 * DAY, 10, organization_id=on.organization.id)) == 2
            assert read(NOW, NOW + 7 * DAY, 10, organization_id=on.other_organization.id) == ()
