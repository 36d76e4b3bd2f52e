"""Attribute mappings: claims of identity providers and directories that are values of attributes."""

from identity.domain.attribute_mappings import AttributeMapping
from identity.domain.permissions import INSTANCE_WRITE
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import ATTRIBUTE_MAPPING, DIRECTORY, UPSTREAM_PROVIDER
from identity.plugins.management.representation import Representation, representation_fields
from identity.plugins.management.resources.directories import find_directory
from identity.services.commands.attributes import AddAttributeMapping, ChangeAttributeMapping


@representation_fields(AttributeMapping)
class AttributeMappingRepresentation(Representation):
    """A claim of an identity provider whose value people get in an attribute when they sign in.

    The mapping acts with the rights of the user `editor_id`, who saved it last. With null, it changes nothing."""


_MAPPINGS = ApiResource[AttributeMapping](
    "attribute_mapping", AttributeMappingRepresentation, permission_subject="upstream_provider"
)
_SAVES = "Besides `upstream_provider.write` this takes `user.write`. The mapping acts with the rights that the caller"
_SAVES += " has at each sign-in."

OPERATIONS = (
    _MAPPINGS.list(
        UPSTREAM_PROVIDER / "attribute-mappings",
        "Lists the attribute mappings of an identity provider, oldest first.",
        lambda call: call.services.attribute_mappings.list_of_source(call.entity),
        is_paged=False,
    ),
    _MAPPINGS.create(
        "add_attribute_mapping",
        UPSTREAM_PROVIDER / "attribute-mappings",
        "Adds an attribute mapping to an identity provider.",
        AddAttributeMapping,
        lambda call, command: call.services.attribute_mappings.add(call.entity, command, principal=call.principal),
        location="/attribute-mappings/{id}",
        description=_SAVES,
    ),
    _MAPPINGS.list(
        DIRECTORY / "attribute-mappings",
        "Lists the attribute mappings of a directory, oldest first.",
        lambda call: call.services.attribute_mappings.list_of_source(find_directory(call)),
        is_paged=False,
        name="list_directory_attribute_mappings",
    ),
    _MAPPINGS.create(
        "add_directory_attribute_mapping",
        DIRECTORY / "attribute-mappings",
        "Adds an attribute mapping to a directory; `claim` is an attribute of its entries.",
        AddAttributeMapping,
        lambda call, command: call.services.attribute_mappings.add(
            find_directory(call), command, principal=call.principal
        ),
        location="/attribute-mappings/{id}",
        description=f"{_SAVES} Directories take `instance.write`, too.",
        permission=INSTANCE_WRITE,
    ),
    _MAPPINGS.get(ATTRIBUTE_MAPPING, "Shows an attribute mapping.", lambda call: call.entity),
    _MAPPINGS.change(
        ATTRIBUTE_MAPPING,
        "Changes an attribute mapping, or only makes the caller its editor.",
        ChangeAttributeMapping,
        lambda call, command: call.services.attribute_mappings.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description=_SAVES,
    ),
    _MAPPINGS.delete(
        "remove_attribute_mapping",
        ATTRIBUTE_MAPPING,
        "Removes an attribute mapping; values stay.",
        lambda call: call.services.attribute_mappings.remove(call.entity.id, principal=call.principal),
        permission="upstream_provider.write",
    ),
)
