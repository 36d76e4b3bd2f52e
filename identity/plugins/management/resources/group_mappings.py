"""Group mappings: values in the claims of identity providers and directories that make people members of groups."""

from identity.domain.group_mappings import GroupMapping
from identity.domain.permissions import INSTANCE_WRITE
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import DIRECTORY, GROUP, GROUP_MAPPING, UPSTREAM_PROVIDER
from identity.plugins.management.representation import Representation, representation_fields
from identity.plugins.management.resources.directories import find_directory
from identity.services.commands.groups import AddGroupMapping, ChangeGroupMapping


@representation_fields(GroupMapping)
class GroupMappingRepresentation(Representation):
    """A value in a claim of an identity provider that makes people members of a group when they sign in.

    The mapping acts with the rights of the user `editor_id`, who saved it last. With null, it adds nobody."""


_MAPPINGS = ApiResource[GroupMapping](
    "group_mapping", GroupMappingRepresentation, permission_subject="upstream_provider"
)
_SAVES = "Besides `upstream_provider.write` this takes `group.write`, and the right to give every role of the group for"
_SAVES += " ever. The mapping acts with the rights that the caller has at each sign-in."

OPERATIONS = (
    _MAPPINGS.list(
        UPSTREAM_PROVIDER / "group-mappings",
        "Lists the group mappings of an identity provider, oldest first.",
        lambda call: call.services.group_mappings.list_of_source(call.entity),
        is_paged=False,
    ),
    _MAPPINGS.list(
        GROUP / "mappings",
        "Lists the group mappings that fill a group, oldest first.",
        lambda call: call.services.group_mappings.list_of_group(call.entity.id),
        is_paged=False,
        name="list_mappings_of_group",
        permission="group.read",
    ),
    _MAPPINGS.create(
        "add_group_mapping",
        UPSTREAM_PROVIDER / "group-mappings",
        "Adds a group mapping to an identity provider.",
        AddGroupMapping,
        lambda call, command: call.services.group_mappings.add(call.entity, command, principal=call.principal),
        location="/group-mappings/{id}",
        description=_SAVES,
    ),
    _MAPPINGS.list(
        DIRECTORY / "group-mappings",
        "Lists the group mappings of a directory, oldest first.",
        lambda call: call.services.group_mappings.list_of_source(find_directory(call)),
        is_paged=False,
        name="list_directory_group_mappings",
    ),
    _MAPPINGS.create(
        "add_directory_group_mapping",
        DIRECTORY / "group-mappings",
        "Adds a group mapping to a directory; `claim` is an attribute of its entries.",
        AddGroupMapping,
        lambda call, command: call.services.group_mappings.add(find_directory(call), command, principal=call.principal),
        location="/group-mappings/{id}",
        description=f"{_SAVES} Directories take `instance.write`, too.",
        permission=INSTANCE_WRITE,
    ),
    _MAPPINGS.get(GROUP_MAPPING, "Shows a group mapping.", lambda call: call.entity),
    _MAPPINGS.change(
        GROUP_MAPPING,
        "Changes a group mapping, or only makes the caller its editor.",
        ChangeGroupMapping,
        lambda call, command: call.services.group_mappings.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description=_SAVES,
    ),
    _MAPPINGS.delete(
        "remove_group_mapping",
        GROUP_MAPPING,
        "Removes a group mapping, with the members that it added.",
        lambda call: call.services.group_mappings.remove(call.entity.id, principal=call.principal),
        permission="upstream_provider.write",
    ),
)
