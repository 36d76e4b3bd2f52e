"""Group mappings at sign-in: who becomes a member, who leaves, and with whose rights."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group
from identity.domain.upstream_providers import UpstreamKind
from identity.domain.users import HumanUser, Subject
from identity.plugins.upstream.claim_mapping import merge_apple_name
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.services.access_control import Principal
from identity.services.commands.groups import (
    AddGroup,
    AddGroupManager,
    AddGroupMapping,
    AddGroupMember,
    ChangeGroupMapping,
)
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.upstream.conftest import UpstreamScenario

OPERATOR = Principal.OPERATOR


@dataclass
class Mapped:
    """A provider with a mapping of roles of a Keycloak realm to a group, saved by an owner of the organization."""

    scene: UpstreamScenario
    group: Group
    mapping: GroupMapping
    editor: HumanUser

    @property
    def world(self) -> World:
        return self.scene.world

    def sign_in(self, *values: str, **claims: object) -> str:
        """Sign in with these roles in another browser; returns the id of the person."""
        self.scene.fake_provider.claims = {"realm_access": {"roles": list(values)}, **claims}
        self.scene.browser = Browser(self.world)
        authorization = self.scene.ask()
        subject: str = self.scene.party.obtain_tokens(self.scene.sign_in(), authorization).claims["sub"]
        return subject

    def members(self) -> dict[str, str | None]:
        """The mapping of each member, by user id."""
        with self.world.read_only_services() as services:
            return {member.user_id: member.mapping_id for member in services.group_members.page(self.group.id)}

    def refusals(self) -> int:
        return len(self.world.audit_events(event="group_mapping.refused", object_id=self.mapping.id))

    def save(self, editor: HumanUser) -> None:
        with self.world.transaction_services() as services:
            principal = load_principal(self.world, editor)
            services.group_mappings.change(self.mapping.id, ChangeGroupMapping(), principal=principal)


def load_principal(world: World, user: HumanUser) -> Principal:
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(user.id)
        assert subject is not None
        return services.access_control.load_principal(subject)


@pytest.fixture
def mapped(scene: UpstreamScenario) -> Mapped:
    world, organization = scene.world, scene.organization
    editor = world.make_human_user(organization)
    world.assign_manager_role(editor, "ORG_OWNER")
    command = {"claim": "realm_access.roles", "value": "sales"}
    with world.transaction_services() as services:
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=OPERATOR)
        manager = AddGroupManager.build(level="organization", resource_id=organization.id, roles=["ORG_OWNER_VIEWER"])
        services.group_managers.add(group.id, manager, principal=OPERATOR)
        mapping = services.group_mappings.add(
            scene.provider,
            AddGroupMapping.build(**command, group_id=group.id),
            principal=load_principal(world, editor),
        )
    return Mapped(scene, group, mapping, editor)


def test_value_in_claim_makes_members_until_it_is_gone(mapped: Mapped) -> None:
    person = mapped.sign_in("support", "sales")
    assert mapped.members() == {person: mapped.mapping.id}
    [event] = mapped.world.audit_events(event="group_member.added", object_id=person)
    assert (event.actor.id, event.detail["mapping_id"]) == (person, mapped.mapping.id)
    assert mapped.sign_in("sales") == person
    assert len(mapped.world.audit_events(event="group_member.added", object_id=person)) == 1
    assert mapped.sign_in("support") == person
    assert mapped.members() == {}
    assert len(mapped.world.audit_events(event="group_member.removed", object_id=person)) == 1


def test_members_by_hand_stay(mapped: Mapped) -> None:
    person = mapped.sign_in()
    with mapped.world.transaction_services() as services:
        services.group_members.add(mapped.group.id, AddGroupMember(user_id=person), principal=OPERATOR)
    for values in ((), ("sales",), ()):
        mapped.sign_in(*values)
        assert mapped.members() == {person: None}


def _weaken(mapped: Mapped) -> None:
    with mapped.world.transaction_services() as services:
        [manager] = services.storage.managers.list_for_user(mapped.editor.id)
        services.managers.remove(manager.id, principal=OPERATOR)


def _deactivate(mapped: Mapped) -> None:
    with mapped.world.transaction_services() as services:
        services.users.deactivate(mapped.editor.id, principal=OPERATOR)


def _remove(mapped: Mapped) -> None:
    with mapped.world.transaction_services() as services:
        services.users.remove(mapped.editor.id, principal=OPERATOR)


def _save_as_operator(mapped: Mapped) -> None:
    with mapped.world.transaction_services() as services:
        services.group_mappings.change(mapped.mapping.id, ChangeGroupMapping(), principal=OPERATOR)


@pytest.mark.parametrize("lose_rights", [_weaken, _deactivate, _remove, _save_as_operator])
def test_mapping_adds_nobody_without_the_rights_of_its_last_editor(
    mapped: Mapped, lose_rights: Callable[[Mapped], None]
) -> None:
    lose_rights(mapped)
    person = mapped.sign_in("sales")
    assert mapped.members() == {}
    assert mapped.refusals() == 1
    mapped.sign_in("sales")
    assert mapped.refusals() == 1
    other = mapped.world.make_human_user(mapped.scene.organization)
    mapped.world.assign_manager_role(other, "ORG_OWNER")
    mapped.save(other)
    mapped.sign_in("sales")
    assert mapped.members() == {person: mapped.mapping.id}
    assert mapped.refusals() == 1


def test_member_leaves_whatever_the_editor_may_do(mapped: Mapped) -> None:
    person = mapped.sign_in("sales")
    _remove(mapped)
    mapped.sign_in("sales")
    assert mapped.members() == {person: mapped.mapping.id}
    mapped.sign_in()
    assert mapped.members() == {}
    mapped.sign_in("sales")
    assert mapped.refusals() == 1


def test_second_mapping_takes_over_when_the_first_no_longer_matches(mapped: Mapped) -> None:
    with mapped.world.transaction_services() as services:
        other = services.group_mappings.add(
            mapped.scene.provider,
            AddGroupMapping(claim="department", value="Sales", group_id=mapped.group.id),
            principal=load_principal(mapped.world, mapped.editor),
        )
    person = mapped.sign_in("sales", department="Sales")
    assert mapped.members() == {person: mapped.mapping.id}
    mapped.sign_in(department="Sales")
    assert mapped.members() == {person: other.id}


def test_people_of_other_organizations_are_not_affected(mapped: Mapped) -> None:
    world, foreign_organization = mapped.world, mapped.world.make_organization()
    foreign, claims = world.make_human_user(foreign_organization), {"realm_access": {"roles": ["sales"]}}
    with world.transaction_services() as services:
        services.group_mappings.apply(Subject(foreign, foreign_organization), mapped.scene.provider, claims)
    assert mapped.members() == {}


def test_claims_that_the_browser_sent_are_not_mapped(scene: UpstreamScenario) -> None:
    provider = replace(scene.provider, kind=UpstreamKind.APPLE)
    signed = ExternalUser(issuer=scene.provider.issuer, subject="1", claims={"email": "ada@x.example"})
    merged = merge_apple_name(provider, signed, json.dumps({"name": {"firstName": "sales", "lastName": "sales"}}))
    assert merged.profile_claims["given_name"] == "sales"
    assert merged.claims == signed.claims
