"""Attribute mappings at sign-in: the claim wins, and what does not fit is ignored."""

from dataclasses import dataclass

import pytest

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.users import HumanUser, Subject
from identity.services.access_control import Principal
from identity.services.commands.attributes import AddAttributeMapping
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser
from tests.plugins.upstream.conftest import UpstreamScenario

OPERATOR = Principal.OPERATOR


@dataclass
class MappedAttribute:
    """A provider with a mapping of a claim to a number, saved by an owner of the organization."""

    scene: UpstreamScenario
    mapping: AttributeMapping
    editor: HumanUser

    def sign_in(self, **claims: object) -> str:
        """Sign in with these claims in another browser; returns the id of the person."""
        self.scene.fake_provider.claims = claims
        self.scene.browser = Browser(self.scene.world)
        authorization = self.scene.ask()
        subject: str = self.scene.party.obtain_tokens(self.scene.sign_in(), authorization).claims["sub"]
        return subject

    def value(self, user_id: str) -> object:
        with self.scene.world.read_only_services() as services:
            return services.attributes.user_values([services.users.get(user_id)])[user_id].get("floor")

    def refusals(self) -> list[str | None]:
        events = self.scene.world.audit_events(event="attribute_mapping.refused", object_id=self.mapping.id)
        return [event.reason for event in events]


@pytest.fixture
def mapped(scene: UpstreamScenario) -> MappedAttribute:
    world, organization = scene.world, scene.organization
    attribute, editor = world.make_attribute(organization, "floor", type="number"), world.make_human_user(organization)
    world.assign_manager_role(editor, "ORG_OWNER")
    with world.transaction_services() as services:
        principal = services.access_control.load_principal(Subject(editor, organization))
        command = AddAttributeMapping(claim="office.floor", attribute_id=attribute.id)
        mapping = services.attribute_mappings.add(scene.provider, command, principal=principal)
    return MappedAttribute(scene, mapping, editor)


def test_claim_wins_at_every_sign_in(mapped: MappedAttribute) -> None:
    person = mapped.sign_in(office={"floor": 3})
    assert mapped.value(person) == 3
    [event] = mapped.scene.world.audit_events(event="user.changed", object_id=person)
    assert (event.actor.id, event.detail["attributes"]["after"]) == (person, {"floor": 3})
    with mapped.scene.world.transaction_services() as services:
        services.users.change(person, ChangeHumanUser(attributes={"floor": 9}), principal=OPERATOR)
    mapped.sign_in(office={"floor": "4.5"})
    assert mapped.value(person) == 4.5
    mapped.sign_in()
    assert mapped.value(person) == 4.5


def test_value_that_does_not_fit_is_ignored_with_one_event(mapped: MappedAttribute) -> None:
    person = mapped.sign_in(office={"floor": 3})
    for wrong in ("third", "third", ["3", "4"], {"is": 3}):
        mapped.sign_in(office={"floor": wrong})
    assert mapped.value(person) == 3
    assert mapped.refusals() == 3 * ["the value does not fit the attribute"]
    event = mapped.scene.world.audit_events(event="attribute_mapping.refused", object_id=mapped.mapping.id)[0]
    assert "third" not in str(event.detail)


def test_mapping_changes_nothing_without_the_rights_of_its_last_editor(mapped: MappedAttribute) -> None:
    with mapped.scene.world.transaction_services() as services:
        services.users.deactivate(mapped.editor.id, principal=OPERATOR)
    person = mapped.sign_in(office={"floor": 3})
    mapped.sign_in(office={"floor": 3})
    assert mapped.value(person) is None
    assert len(mapped.refusals()) == 1
