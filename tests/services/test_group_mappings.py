"""Group mappings: who may save and remove them, and what else they take part in."""

import json
from dataclasses import dataclass
from datetime import timedelta

import pytest

from identity.domain.errors import Denied, Invalid
from identity.domain.group_mappings import GroupMapping, find_claim
from identity.domain.groups import Group
from identity.domain.organizations import Organization
from identity.domain.permissions import project_resource
from identity.domain.upstream_providers import UpstreamProvider
from identity.domain.users import Subject
from identity.services import group_mappings
from identity.services.access_control import Principal
from identity.services.commands.groups import (
    AddGroup,
    AddGroupGrant,
    AddGroupManager,
    AddGroupMapping,
    ChangeGroupGrant,
    ChangeGroupManager,
    ChangeGroupMapping,
)
from identity.services.commands.managers import ChangeManager
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

OPERATOR = Principal.OPERATOR


@dataclass(frozen=True)
class MappingEstate:
    """An organization with a group and an identity provider."""

    world: World
    organization: Organization
    group: Group
    provider: UpstreamProvider

    def principal(self, role: str, *, ends: bool = False) -> Principal:
        """A new person with this role at the organization, possibly for a day."""
        person = self.world.make_human_user(self.organization)
        self.world.assign_manager_role(person, role)
        with self.world.transaction_services() as services:
            if ends:
                [manager] = services.storage.managers.list_for_user(person.id)
                until = services.now + timedelta(days=1)
                services.managers.change(manager.id, ChangeManager(until=until), principal=OPERATOR)
            return services.access_control.load_principal(Subject(person, self.organization))

    def map(self, value: str = "sales", *, principal: Principal = OPERATOR) -> GroupMapping:
        command = AddGroupMapping(claim="groups", value=value, group_id=self.group.id)
        with self.world.transaction_services() as services:
            return services.group_mappings.add(self.provider, command, principal=principal)

    def make_group_owner(self) -> None:
        """Make the members owners of the organization."""
        role = AddGroupManager.build(level="organization", resource_id=self.organization.id, roles=["ORG_OWNER"])
        with self.world.transaction_services() as services:
            services.group_managers.add(self.group.id, role, principal=OPERATOR)


@pytest.fixture
def estate(world: World) -> MappingEstate:
    return make_estate(world)


def make_estate(world: World) -> MappingEstate:
    organization = world.make_organization()
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=OPERATOR)
    return MappingEstate(world, organization, group, world.make_upstream_provider(organization))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("groups", ["sales"]),
        ("realm_access.roles", "buyer"),
        ("https://acme.example/claims.roles", ["agent"]),
        ("resource_access.shop.example.roles", ["seller"]),
        ("realm_access.missing", None),
        ("groups.0", None),
        ("missing", None),
    ],
)
def test_claim_is_found_by_its_path(path: str, found: object) -> None:
    claims = {
        "groups": ["sales"],
        "realm_access": {"roles": "buyer"},
        "https://acme.example/claims.roles": ["agent"],
        "resource_access": {"shop.example": {"roles": ["seller"]}, "shop": "closed"},
    }
    assert find_claim(claims, path) == found


def test_mapping_is_saved_by_who_may_change_the_provider_and_give_every_role(estate: MappingEstate) -> None:
    with pytest.raises(Denied, match=r"upstream_provider\.write"):
        estate.map(principal=estate.principal("ORG_USER_MANAGER"))
    mapping = estate.map(principal=estate.principal("ORG_OWNER"))
    leaving = estate.principal("ORG_OWNER", ends=True)
    with estate.world.transaction_services() as services:
        changed = services.group_mappings.change(mapping.id, ChangeGroupMapping(value="support"), principal=leaving)
        assert changed.editor_id == leaving.id
    estate.make_group_owner()
    with pytest.raises(Denied, match="for longer than you have it"):
        estate.map("other", principal=leaving)
    with estate.world.transaction_services() as services:
        with pytest.raises(Denied, match="for longer than you have it"):
            services.group_mappings.change(mapping.id, ChangeGroupMapping(), principal=leaving)
        assert services.group_mappings.refusal_reason(changed) is not None
        services.group_mappings.remove(mapping.id, principal=leaving)


def test_mapping_of_a_provider_of_the_instance_takes_the_instance(estate: MappingEstate) -> None:
    with estate.world.transaction_services() as services:
        change = ChangeUpstreamProvider(everywhere=True)
        services.upstream_providers.change(estate.provider.id, change, principal=OPERATOR)
    with pytest.raises(Denied, match="Only instance administrators"):
        estate.map(principal=estate.principal("ORG_OWNER"))


def test_changing_a_mapped_provider_takes_the_rights_over_its_groups(estate: MappingEstate) -> None:
    estate.make_group_owner()
    leaving = estate.principal("ORG_OWNER", ends=True)
    change = ChangeUpstreamProvider(issuer="https://login.mallory.example")
    with estate.world.transaction_services() as services:
        services.upstream_providers.change(estate.provider.id, ChangeUpstreamProvider(name="Login"), principal=leaving)
    estate.map()
    with estate.world.transaction_services() as services:
        providers = services.upstream_providers
        with pytest.raises(Denied, match="for longer than you have it"):
            providers.change(estate.provider.id, change, principal=leaving)
        providers.deactivate(estate.provider.id, principal=leaving)
        with pytest.raises(Denied, match="for longer than you have it"):
            providers.reactivate(estate.provider.id, principal=leaving)


def test_roles_of_a_mapped_group_are_added_by_who_may_change_the_provider(estate: MappingEstate) -> None:
    world, manager = estate.world, estate.principal("ORG_USER_MANAGER")
    project = world.make_project(estate.organization, roles=["buyer", "seller"])
    command = AddGroupGrant(project_id=project.id, roles=frozenset({"buyer"}))
    with world.transaction_services() as services:
        grant = services.group_grants.add(estate.group.id, command, principal=manager)
    estate.map()
    with world.transaction_services() as services:
        more = ChangeGroupGrant(roles=frozenset({"buyer", "seller"}))
        with pytest.raises(Denied, match=r"upstream_provider\.write"):
            services.group_grants.change(grant.id, more, principal=manager)
        with pytest.raises(Denied, match=r"upstream_provider\.write"):
            services.group_grants.add(estate.group.id, command, principal=manager)
        services.group_grants.change(grant.id, ChangeGroupGrant(roles=frozenset()), principal=manager)
        services.groups.deactivate(estate.group.id, principal=manager)
        with pytest.raises(Denied, match=r"upstream_provider\.write"):
            services.groups.reactivate(estate.group.id, principal=manager)


def test_manager_roles_of_a_mapped_group_are_extended_by_who_may_change_the_provider(estate: MappingEstate) -> None:
    world = estate.world
    at = project_resource(world.make_project(estate.organization))
    person = world.make_human_user(estate.organization)
    world.assign_manager_role(person, "ORG_USER_MANAGER")
    world.assign_manager_role(person, "PROJECT_OWNER", resource=at)
    estate.map()
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        principal = services.access_control.load_principal(subject)
        command = AddGroupManager(
            level=at.key.level, resource_id=at.key.id, roles=frozenset({"PROJECT_OWNER", "PROJECT_OWNER_VIEWER"})
        )
        with pytest.raises(Denied, match=r"upstream_provider\.write"):
            services.group_managers.add(estate.group.id, command, principal=principal)
        roles = services.group_managers.add(estate.group.id, command, principal=Principal.OPERATOR)
        fewer, more = (
            ChangeGroupManager(roles=names) for names in (frozenset({"PROJECT_OWNER_VIEWER"}), command.roles)
        )
        services.group_managers.change(roles.id, fewer, principal=principal)
        with pytest.raises(Denied, match=r"upstream_provider\.write"):
            services.group_managers.change(roles.id, more, principal=principal)


def test_group_is_of_the_organization_of_the_provider(estate: MappingEstate) -> None:
    foreign_organization = estate.world.make_organization()
    with estate.world.transaction_services() as services:
        foreign = services.groups.add(foreign_organization.id, AddGroup(name="Sales"), principal=OPERATOR)
        for group_id in (foreign.id, "unknown"):
            command = AddGroupMapping(claim="groups", value="sales", group_id=group_id)
            with pytest.raises(Invalid, match="no such group"):
                services.group_mappings.add(estate.provider, command, principal=OPERATOR)


def test_mappings_of_a_provider_are_distinct_and_limited(
    estate: MappingEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.map()
    with pytest.raises(Invalid, match="exists already"):
        estate.map()
    monkeypatch.setattr(group_mappings, "MAX_GROUP_MAPPINGS", 1)
    with pytest.raises(Invalid, match="at most 1"):
        estate.map("other")


def test_mappings_are_exported_applied_and_pruned(isolated_world: World) -> None:
    world, estate = isolated_world, make_estate(isolated_world)
    mapping = estate.map(principal=estate.principal("ORG_OWNER"))
    person = world.make_human_user(estate.organization)
    with world.transaction_services() as services:
        claims = {"groups": "sales"}
        services.group_mappings.apply(Subject(person, estate.organization), estate.provider, claims)
    with world.read_only_services() as services:
        transfer = OrganizationTransfer(services)
        text = "".join(transfer.export_document(estate.organization.id, principal=OPERATOR))
    described = json.loads(text)["organization"]
    [provider] = described["upstream_providers"]
    assert provider["group_mappings"] == [{"claim": "groups", "value": "sales", "group": estate.group.id}]
    # The mapping adds its members again.
    assert described["groups"][0]["members"] == []
    provider["group_mappings"] = [{"claim": "groups", "value": "support", "group": "Sales"}]
    document = parse_desired_state({"version": 1, "organizations": [described]})
    with world.transaction_services() as services:
        apply_desired_state(services, document, principal=OPERATOR, prune=True)
    with world.read_only_services() as services:
        [applied] = services.group_mappings.list_of_provider(estate.provider.id)
        # With the mapping its members have gone, too.
        assert services.group_members.page(estate.group.id).items == ()
    assert (applied.value, applied.editor_id) == ("support", None)
    assert applied.id != mapping.id
