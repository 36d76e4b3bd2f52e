"""Attribute mappings: who may save them, what they store, and documents with them."""

import json
from typing import Any

import pytest

from identity.domain.attributes import AttributeType
from identity.domain.errors import Denied, Invalid
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.attribute_mappings import claim_as_attribute
from identity.services.commands.attributes import AddAttributeMapping, ChangeAttributeMapping
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.storage.contract import factories
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

OPERATOR = Principal.OPERATOR


@pytest.mark.parametrize(
    ("kind", "found", "value"),
    [
        (AttributeType.TEXT, " Sales ", "Sales"),
        (AttributeType.TEXT, ["Sales"], "Sales"),
        (AttributeType.TEXT, 7, "7"),
        (AttributeType.TEXT, "", None),
        (AttributeType.TEXT, ["a", "b"], ValueError),
        (AttributeType.TEXT, {"a": "b"}, ValueError),
        (AttributeType.TEXT, 501 * "x", ValueError),
        (AttributeType.NUMBER, "12", 12),
        (AttributeType.NUMBER, True, ValueError),
        (AttributeType.NUMBER, 1e300, ValueError),
        (AttributeType.NUMBER, float("nan"), ValueError),
        (AttributeType.DATE, "2027-01-31", "2027-01-31"),
        (AttributeType.DATE, "31.1.2027", ValueError),
        (AttributeType.CHOICE, "red", "red"),
        (AttributeType.CHOICE, "blue", ValueError),
        (AttributeType.BOOLEAN, True, True),
        (AttributeType.BOOLEAN, "no", False),
        (AttributeType.BOOLEAN, 1, ValueError),
    ],
)
def test_claim_is_converted_to_the_type_of_the_attribute(kind: AttributeType, found: object, value: Any) -> None:
    definition = factories.attribute_definition(type=kind, choices=("red",) if kind is AttributeType.CHOICE else ())
    if value is ValueError:
        with pytest.raises(ValueError, match=r"."):
            claim_as_attribute(definition, found)
    else:
        converted = claim_as_attribute(definition, found)
        assert (converted, type(converted)) == (value, type(value))


def test_mapping_is_saved_by_who_may_change_provider_and_people(world: World) -> None:
    organization = world.make_organization()
    provider, attribute = world.make_upstream_provider(organization), world.make_attribute(organization, "team")
    foreign = world.make_attribute(world.make_organization(), "team")
    owner, manager = world.make_human_user(organization), world.make_human_user(organization)
    world.assign_manager_role(owner, "ORG_OWNER")
    world.assign_manager_role(manager, "ORG_USER_MANAGER")
    command = AddAttributeMapping(claim="team", attribute_id=attribute.id)
    with world.transaction_services() as services:
        mappings, load = services.attribute_mappings, services.access_control.load_principal
        with pytest.raises(Denied, match=r"upstream_provider\.write"):
            mappings.add(provider, command, principal=load(Subject(manager, organization)))
        with pytest.raises(Invalid, match="no such attribute"):
            mappings.add(provider, AddAttributeMapping(claim="a", attribute_id=foreign.id), principal=OPERATOR)
        mapping = mappings.add(provider, command, principal=OPERATOR)
        assert mappings.refusal_reason(mapping) == "no active user has saved the mapping"
        with pytest.raises(Invalid, match="mapped already"):
            mappings.add(provider, command, principal=OPERATOR)
        saved = mappings.change(mapping.id, ChangeAttributeMapping(), principal=load(Subject(owner, organization)))
        assert (saved.claim, mappings.refusal_reason(saved)) == ("team", None)


def test_mappings_are_exported_applied_and_pruned(isolated_world: World) -> None:
    world, organization = isolated_world, isolated_world.make_organization()
    provider, attribute = world.make_upstream_provider(organization), world.make_attribute(organization, "team")
    with world.transaction_services() as services:
        command = AddAttributeMapping(claim="team", attribute_id=attribute.id)
        services.attribute_mappings.add(provider, command, principal=OPERATOR)
    with world.read_only_services() as services:
        document = OrganizationTransfer(services).export_document(organization.id, principal=OPERATOR)
        described = json.loads("".join(document))["organization"]
    [exported] = described["upstream_providers"]
    assert exported["attribute_mappings"] == [{"claim": "team", "attribute": attribute.id}]
    for mappings in ([{"claim": "department", "attribute": "team"}], []):
        exported["attribute_mappings"] = mappings
        state = parse_desired_state({"version": 1, "organizations": [described]})
        with world.transaction_services() as services:
            apply_desired_state(services, state, principal=OPERATOR, prune=True)
        with world.read_only_services() as services:
            stored = services.attribute_mappings.list_of_provider(provider.id)
        assert [mapping.claim for mapping in stored] == [item["claim"] for item in mappings]
