"""Groups: members have the roles, and a manager gives or takes no more through a group than otherwise."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from identity.domain.errors import Denied, Invalid, NotFound
from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource, project_grant_resource, project_resource
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.groups import (
    AddGroup,
    AddGroupGrant,
    AddGroupManager,
    AddGroupMember,
    ChangeGroup,
    ChangeGroupGrant,
    ChangeGroupManager,
    ChangeGroupMember,
)
from identity.services.commands.managers import ChangeManager
from identity.services.container import Services
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory", "sqlite")

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Team:
    """A group of an organization, with helpers that act as the operator or as another principal."""

    world: World
    organization: Organization
    group: Group

    def add_member(self, user: HumanUser, *, principal: Principal = Principal.OPERATOR, **members: Any) -> GroupMember:
        command = AddGroupMember(user_id=user.id, **members)
        with self.world.transaction_services() as services:
            return services.group_members.add(self.group.id, command, principal=principal)

    def add_grant(
        self, project_id: str, *roles: str, principal: Principal = Principal.OPERATOR, **members: Any
    ) -> GroupGrant:
        command = AddGroupGrant(project_id=project_id, roles=frozenset(roles), **members)
        with self.world.transaction_services() as services:
            return services.group_grants.add(self.group.id, command, principal=principal)

    def add_manager(
        self, *roles: str, at: Resource | None = None, principal: Principal = Principal.OPERATOR, **members: Any
    ) -> GroupManager:
        key = (at or Resource.of_organization(self.organization.id)).key
        command = AddGroupManager(level=key.level, resource_id=key.id, roles=frozenset(roles), **members)
        with self.world.transaction_services() as services:
            return services.group_managers.add(self.group.id, command, principal=principal)

    def person(self) -> HumanUser:
        return self.world.make_human_user(self.organization)

    def principal(self, *roles: str) -> Principal:
        """A new person with these roles at the organization."""
        person = self.person()
        for role in roles:
            self.world.assign_manager_role(person, role)
        return self.load(person)

    def load(self, person: HumanUser) -> Principal:
        with self.world.read_only_services() as services:
            subject = services.storage.users.find_subject(person.id)
            assert subject is not None
            return services.access_control.load_principal(subject)

    def roles(self, person: HumanUser, project_id: str) -> frozenset[str]:
        with self.world.read_only_services() as services:
            return services.lookup.list_project_roles(person.id, project_id)

    def permissions(self, person: HumanUser) -> frozenset[str]:
        """Those at the organization."""
        principal = self.load(person)
        with self.world.read_only_services() as services:
            return services.access_control.list_permissions(principal, Resource.of_organization(self.organization.id))


@pytest.fixture
def team(world: World) -> Team:
    return make_team(world)


def make_team(world: World) -> Team:
    organization = world.make_organization()
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=Principal.OPERATOR)
    return Team(world, organization, group)


@pytest.fixture
def changing(world: World) -> Iterator[Services]:
    with world.transaction_services() as services:
        yield services


# --- what members have ------------------------------------------------------------------------------------------------


def test_members_have_the_project_roles_of_an_active_group(team: Team) -> None:
    world, person, project = team.world, team.person(), team.world.make_project(team.organization, roles=["buyer"])
    team.add_grant(project.id, "buyer")
    assert team.roles(person, project.id) == frozenset()
    member = team.add_member(person)
    assert team.roles(person, project.id) == {"buyer"}
    with world.transaction_services() as services:
        services.groups.deactivate(team.group.id, principal=Principal.OPERATOR)
    assert team.roles(person, project.id) == frozenset()
    with world.transaction_services() as services:
        services.groups.reactivate(team.group.id, principal=Principal.OPERATOR)
    assert team.roles(person, project.id) == {"buyer"}
    with world.transaction_services() as services:
        services.group_members.remove(member.id, principal=Principal.OPERATOR)
    assert team.roles(person, project.id) == frozenset()


def test_members_have_roles_of_a_project_that_was_granted_to_their_organization(team: Team) -> None:
    world, person = team.world, team.person()
    project = world.make_project(roles=["buyer", "seller"])
    with pytest.raises(Invalid, match="has no grant of the project"):
        team.add_grant(project.id, "buyer")
    project_grant = world.make_project_grant(project, team.organization, roles=["buyer"])
    with pytest.raises(Invalid, match="does not include the role seller"):
        team.add_grant(project.id, "seller")
    team.add_member(person)
    team.add_grant(project.id, "buyer")
    assert team.roles(person, project.id) == {"buyer"}
    events = [
        event for event in world.audit_events(event="group_grant.added") if event.detail["project_id"] == project.id
    ]
    assert {event.organization_id for event in events} == {project.organization_id, team.organization.id}
    assert "group_id" not in next(item for item in events if item.organization_id == project.organization_id).detail
    with world.transaction_services() as services:
        services.project_grants.remove(project_grant.id, principal=Principal.OPERATOR)
    assert team.roles(person, project.id) == frozenset()


def test_members_have_the_manager_roles_of_the_group_until_the_first_end(team: Team) -> None:
    person, now = team.person(), team.world.clock()
    team.add_member(person, until=now + 2 * DAY)
    team.add_manager("ORG_OWNER", until=now + DAY)
    team.add_manager("PROJECT_OWNER", at=project_resource(team.world.make_project(team.organization)))
    assert "user.write" in team.permissions(person)
    assert {item.until for item in team.load(person).manager_entries} == {now + DAY, now + 2 * DAY}
    team.world.clock.advance(days=1)
    assert team.permissions(person) == frozenset()
    assert len(team.load(person).manager_entries) == 1
    team.world.clock.advance(days=1)
    assert team.load(person).manager_entries == ()


def test_members_are_users_of_the_organization(team: Team) -> None:
    with pytest.raises(Invalid, match="no such user in the organization"):
        team.add_member(team.world.make_human_user())
    person = team.person()
    team.add_member(person)
    with pytest.raises(Invalid, match="already a member"):
        team.add_member(person)


@pytest.mark.parametrize("level", ["instance", "elsewhere", "project elsewhere", "granted to others", "unknown"])
def test_group_has_no_manager_roles_outside_its_organization(team: Team, level: str) -> None:
    world, other = team.world, team.world.make_organization()
    lent = world.make_project_grant(world.make_project(team.organization), other)
    level_and_id = {
        "instance": (ManagerLevel.INSTANCE, "instance"),
        "elsewhere": (ManagerLevel.ORGANIZATION, other.id),
        "project elsewhere": (ManagerLevel.PROJECT, world.make_project(other).id),
        "granted to others": (ManagerLevel.PROJECT_GRANT, lent.id),
        "unknown": (ManagerLevel.PROJECT, "unknown"),
    }[level]
    role = {"instance": "IAM_OWNER", "organization": "ORG_OWNER", "project": "PROJECT_OWNER"}
    command = AddGroupManager(
        level=level_and_id[0],
        resource_id=level_and_id[1],
        roles=frozenset({role.get(level_and_id[0], "PROJECT_GRANT_OWNER")}),
    )
    with world.transaction_services() as services, pytest.raises(Invalid, match="Choose the organization"):
        services.group_managers.add(team.group.id, command, principal=Principal.OPERATOR)


def test_group_has_manager_roles_at_a_project_grant_that_its_organization_holds(team: Team) -> None:
    world, person, project = team.world, team.person(), team.world.make_project()
    project_grant = world.make_project_grant(project, team.organization)
    resource = project_grant_resource(project_grant, project)
    team.add_manager("PROJECT_GRANT_OWNER", at=resource)
    team.add_member(person)
    [entry] = team.load(person).manager_entries
    assert (entry.resource, entry.organization_id) == (resource.key, project.organization_id)


# --- rights -----------------------------------------------------------------------------------------------------------


def test_user_managers_fill_groups_with_project_roles_alone(team: Team) -> None:
    project, manager = team.world.make_project(team.organization, roles=["buyer"]), team.principal("ORG_USER_MANAGER")
    team.add_grant(project.id, "buyer", principal=manager)
    team.add_member(team.person(), principal=manager)
    with pytest.raises(Denied, match=r"organization_manager\.write"):
        team.add_manager("ORG_PROJECT_CREATOR", principal=manager)
    team.add_manager("ORG_PROJECT_CREATOR")
    with pytest.raises(Denied, match=r"organization_manager\.write"):
        team.add_member(team.person(), principal=manager)


def test_members_are_added_by_who_may_give_every_role(team: Team, changing: Services) -> None:
    owner, viewer = team.principal("ORG_OWNER"), team.principal("ORG_OWNER_VIEWER")
    with pytest.raises(Denied, match=r"group\.write"):
        changing.group_members.add(team.group.id, AddGroupMember(user_id=owner.id or ""), principal=viewer)


def test_roles_are_given_for_no_longer_than_the_giver_has_them(team: Team) -> None:
    world, person, now = team.world, team.person(), team.world.clock()
    world.assign_manager_role(person, "ORG_OWNER")
    with world.transaction_services() as services:
        [manager] = services.storage.managers.list_for_user(person.id)
        services.managers.change(manager.id, ChangeManager(until=now + DAY), principal=Principal.OPERATOR)
    leaving = team.load(person)
    with pytest.raises(Denied, match="for longer than you have it"):
        team.add_manager("ORG_OWNER", principal=leaving)
    granted = team.add_manager("ORG_OWNER_VIEWER", principal=leaving, until=now + DAY)
    team.add_member(team.person(), principal=leaving)
    with world.transaction_services() as services, pytest.raises(Denied, match="for longer than you have it"):
        services.group_managers.change(granted.id, ChangeGroupManager(until=now + 2 * DAY), principal=leaving)
    with world.transaction_services() as services:
        services.group_managers.change(granted.id, ChangeGroupManager(until=None), principal=Principal.OPERATOR)
    with pytest.raises(Denied, match="for longer than you have it"):
        team.add_member(team.person(), principal=leaving)
    team.add_member(team.person(), principal=leaving, until=now + DAY)


def test_members_with_more_rights_are_not_removed_from_manager_roles(team: Team) -> None:
    world, boss, owner = team.world, team.person(), team.principal("ORG_OWNER")
    world.assign_manager_role(boss, "IAM_OWNER", resource=Resource.INSTANCE)
    member, manager = team.add_member(boss), team.add_manager("ORG_OWNER_VIEWER")
    for take in (
        lambda services: services.group_members.remove(member.id, principal=owner),
        lambda services: services.group_managers.remove(manager.id, principal=owner),
        lambda services: services.groups.deactivate(team.group.id, principal=owner),
        lambda services: services.groups.remove(team.group.id, principal=owner),
    ):
        with world.transaction_services() as services, pytest.raises(Denied, match="beyond your own"):
            take(services)
    with world.transaction_services() as services:
        services.group_managers.remove(manager.id, principal=Principal.OPERATOR)
        services.groups.remove(team.group.id, principal=owner)
    with world.read_only_services() as services, pytest.raises(NotFound):
        services.group_members.get(member.id)


def test_reactivating_gives_every_role(team: Team) -> None:
    world, manager = team.world, team.principal("ORG_USER_MANAGER")
    team.add_manager("ORG_OWNER")
    with world.transaction_services() as services:
        services.groups.deactivate(team.group.id, principal=Principal.OPERATOR)
    for do in ("reactivate", "remove"):
        with world.transaction_services() as services, pytest.raises(Denied, match=r"organization_manager\.write"):
            getattr(services.groups, do)(team.group.id, principal=manager)


def test_members_count_as_privileged_as_their_group_makes_them(team: Team) -> None:
    person, manager = team.person(), team.principal("ORG_USER_MANAGER")
    with team.world.read_only_services() as services:
        services.access_control.require_not_more_privileged(manager, person)
    team.add_member(person)
    team.add_manager("ORG_OWNER")
    with team.world.read_only_services() as services:
        with pytest.raises(Denied):
            services.access_control.require_not_more_privileged(manager, person)
        with pytest.raises(Denied):
            services.access_control.require_no_more_privileged_user(manager, team.organization.id)


# --- documents --------------------------------------------------------------------------------------------------------


def test_groups_are_exported_and_imported_with_what_they_have_here(team: Team) -> None:
    world, person = team.world, team.person()
    project = world.make_project(team.organization, roles=["buyer"])
    lent = world.make_project()
    project_grant = world.make_project_grant(lent, team.organization)
    team.add_member(person, until=world.clock() + DAY)
    team.add_grant(project.id, "buyer")
    team.add_grant(lent.id)
    team.add_manager("ORG_OWNER")
    team.add_manager("PROJECT_OWNER", at=project_resource(project))
    team.add_manager("PROJECT_GRANT_OWNER", at=project_grant_resource(project_grant, lent))
    with world.read_only_services() as services:
        transfer = OrganizationTransfer(services)
        text = "".join(transfer.export_document(team.organization.id, principal=Principal.OPERATOR))
    [group] = json.loads(text)["organization"]["groups"]
    assert (group["id"], group["name"], group["active"]) == (team.group.id, "Sales", True)
    assert [member["user"] for member in group["members"]] == [person.id]
    assert group["grants"] == [{"project": project.id, "roles": ["buyer"]}]
    assert group["managers"] == [{"roles": ["ORG_OWNER"]}, {"project": project.id, "roles": ["PROJECT_OWNER"]}]


def test_groups_are_applied_and_pruned(isolated_world: World) -> None:
    world, team = isolated_world, make_team(isolated_world)
    project = world.make_project(team.organization, roles=["buyer"])
    person, other = team.person(), team.person()
    team.add_member(other)
    described = {
        "name": "sales",
        "members": [{"user": person.user_name}],
        "grants": [{"project": project.name, "roles": ["buyer"]}],
        "managers": [{"project": project.id, "roles": ["PROJECT_OWNER"]}],
    }
    for _ in range(2):
        changes = _apply(team, [described, {"name": "Support"}])
    assert changes == []
    assert team.roles(person, project.id) == {"buyer"}
    assert team.roles(other, project.id) == frozenset()
    assert [entry.resource.id for entry in team.load(person).manager_entries] == [project.id]
    _apply(team, [])
    assert team.roles(person, project.id) == frozenset()
    with world.read_only_services() as services:
        assert services.groups.page(team.organization.id).items == ()
    with pytest.raises(Invalid, match="There is no project Unknown"):
        _apply(team, [{"name": "Sales", "grants": [{"project": "Unknown"}]}])


def _apply(team: Team, groups: list[dict[str, Any]]) -> list[Any]:
    """The changes; what is not described is removed."""
    organization = {"id": team.organization.id, "name": team.organization.name, "groups": groups}
    state = parse_desired_state({"version": 1, "organizations": [organization]})
    with team.world.transaction_services() as services:
        result = apply_desired_state(services, state, principal=Principal.OPERATOR, prune=True)
    return list(result.state_changes)


# --- changes ----------------------------------------------------------------------------------------------------------


def test_group_names_are_unique_in_the_organization(team: Team) -> None:
    with team.world.transaction_services() as services:
        with pytest.raises(Invalid, match="already has a group with this name"):
            services.groups.add(team.organization.id, AddGroup(name="SALES"), principal=Principal.OPERATOR)
        changed = services.groups.change(team.group.id, ChangeGroup(name="Selling"), principal=Principal.OPERATOR)
    assert changed.name == "Selling"


def test_changed_project_roles_are_those_of_the_members(team: Team) -> None:
    world, person = team.world, team.person()
    project = world.make_project(team.organization, roles=["buyer", "seller"])
    grant = team.add_grant(project.id, "buyer")
    team.add_member(person)
    with world.transaction_services() as services:
        with pytest.raises(Invalid, match="no role baker"):
            services.group_grants.change(
                grant.id, ChangeGroupGrant(roles=frozenset({"baker"})), principal=Principal.OPERATOR
            )
        services.group_grants.change(
            grant.id, ChangeGroupGrant(roles=frozenset({"seller"})), principal=Principal.OPERATOR
        )
    assert team.roles(person, project.id) == {"seller"}


def test_ends_are_in_the_future(team: Team) -> None:
    past: datetime = team.world.clock() - DAY
    member = team.add_member(team.person())
    with pytest.raises(Invalid, match="in the future"):
        team.add_member(team.person(), until=past)
    with pytest.raises(Invalid, match="in the future"):
        team.add_manager("ORG_OWNER", until=past)
    grant = team.add_grant(team.world.make_project(team.organization, roles=["buyer"]).id, "buyer")
    manager, operator = team.add_manager("ORG_OWNER"), Principal.OPERATOR
    with team.world.transaction_services() as services:
        with pytest.raises(Invalid, match="in the future"):
            services.group_members.change(member.id, ChangeGroupMember(until=past), principal=operator)
        with pytest.raises(Invalid, match="in the future"):
            services.group_grants.change(grant.id, ChangeGroupGrant(until=past), principal=operator)
        with pytest.raises(Invalid, match="in the future"):
            services.group_managers.change(manager.id, ChangeGroupManager(until=past), principal=operator)


def test_what_ends_is_announced_once_and_removed_afterwards(team: Team) -> None:
    world, soon = team.world, team.world.clock() + 3 * DAY
    with world.transaction_services() as services:
        # What other tests have left.
        services.ends_of_roles.record_ending()
        services.ends_of_roles.remove_ended()
    project = world.make_project(team.organization, roles=["buyer"])
    parts = (
        team.add_member(team.person(), until=soon),
        team.add_grant(project.id, "buyer", until=soon),
        team.add_manager("ORG_OWNER", until=soon),
    )
    with world.transaction_services() as services:
        assert services.ends_of_roles.record_ending() == 3
        assert services.ends_of_roles.record_ending() == 0
        assert services.ends_of_roles.remove_ended() == 0
    world.clock.advance(days=3)
    with world.transaction_services() as services:
        assert services.ends_of_roles.remove_ended() >= 3
        stores = (services.storage.group_members, services.storage.group_grants, services.storage.group_managers)
        assert [store.find(part.id) for store, part in zip(stores, parts, strict=True)] == [None, None, None]
