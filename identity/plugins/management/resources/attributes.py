"""Attributes: typed fields that an organization defines for its people. The values are members of each user."""

from identity.domain.attributes import AttributeDefinition
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import ATTRIBUTE, ORGANIZATION
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.attributes import ChangeAttribute, CreateAttribute


@representation_fields(AttributeDefinition)
class AttributeRepresentation(Representation):
    """An attribute of an organization's people. Its key never changes."""


_ATTRIBUTES = ApiResource[AttributeDefinition]("attribute", AttributeRepresentation)

OPERATIONS = (
    _ATTRIBUTES.list(
        ORGANIZATION / "attributes",
        "Lists the attributes that an organization defines for its people, by key.",
        lambda call: call.services.attributes.list_definitions(call.entity.id),
        is_paged=False,
    ),
    _ATTRIBUTES.create(
        "create_attribute",
        ORGANIZATION / "attributes",
        "Defines an attribute of an organization's people.",
        CreateAttribute,
        lambda call, command: call.services.attributes.create(call.entity.id, command, principal=call.principal),
        location="/attributes/{id}",
        description="`choices` are the values of the type `choice`. With `in_tokens` the value is released with the "
        "scope `urn:service:iam:user:metadata`, and also as `claim` if that is set.",
    ),
    _ATTRIBUTES.get(ATTRIBUTE, "Shows an attribute.", lambda call: call.entity),
    _ATTRIBUTES.change(
        ATTRIBUTE,
        "Changes an attribute; the key stays.",
        ChangeAttribute,
        lambda call, command: call.services.attributes.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description="A type that some stored value does not fit is refused, and so is the removal of a choice that "
        "someone has.",
    ),
    _ATTRIBUTES.delete(
        "delete_attribute",
        ATTRIBUTE,
        "Deletes an attribute with the values of all people.",
        lambda call: call.services.attributes.remove(call.entity.id, principal=call.principal),
    ),
)
