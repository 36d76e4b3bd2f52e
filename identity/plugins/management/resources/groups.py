"""Groups: people and service users of an organization who have roles together."""

from typing import Any

from identity.domain.groups import Group, GroupGrant, GroupManager, GroupMember
from identity.domain.permissions import ManagerLevel
from identity.plugins.management.api_resource import ApiResource, EntityApiResource
from identity.plugins.management.entity_paths import (
    GROUP,
    GROUP_GRANT,
    GROUP_MANAGER,
    GROUP_MEMBER,
    ORGANIZATION,
    SERVICE_USER,
    USER,
)
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
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
from identity.storage.stores.groups import GROUP_SORT_KEYS


@representation_fields(Group)
class GroupRepresentation(Representation):
    """A group of an organization. While it is inactive, its members do not have its roles."""


@representation_fields(GroupMember)
class GroupMemberRepresentation(Representation):
    """A user in a group of their organization.

    The membership ends by itself at the moment `until`; null means that it has no end."""


@representation_fields(GroupGrant)
class GroupGrantRepresentation(Representation):
    """Roles of a project that the members of a group have. If they derive from a project grant, it is named.

    The roles end by themselves at the moment `until`; null means that they have no end. A project grant that ends
    earlier ends them earlier."""


@representation_fields(GroupManager, without={"resource"})
class GroupManagerRepresentation(Representation):
    """The manager roles that the members of a group have at one resource.

    The roles end by themselves at the moment `until`; null means that they have no end."""

    id: str
    level: ManagerLevel
    resource_id: str


def _represent_manager(_call: OperationCall[Any], manager: GroupManager) -> GroupManagerRepresentation:
    return GroupManagerRepresentation.from_value(manager, level=manager.resource.level, resource_id=manager.resource.id)


def _list_of_user(call: OperationCall[Any]) -> tuple[Group, ...]:
    return tuple(group for group, _ in call.services.groups.list_of_user(call.entity.id))


_GROUPS = EntityApiResource(
    "group",
    GroupRepresentation,
    at=GROUP,
    change_command=ChangeGroup,
    service=lambda services: services.groups,
)
_MEMBERS = ApiResource[GroupMember]("group_member", GroupMemberRepresentation, permission_subject="group")
_GRANTS = ApiResource[GroupGrant]("group_grant", GroupGrantRepresentation, permission_subject="group")
_MANAGERS = ApiResource[GroupManager](
    "group_manager", GroupManagerRepresentation, _represent_manager, permission_subject="group"
)
_WRITE = "group.write"
_GIVES = "The caller must be permitted to give every role of the group."
_TAKES = (
    "The caller must be permitted to change every role of the group, and lose no rank to a member with manager roles."
)
_USER_GRANT = "Besides `group.write` this takes `user_grant.write` at the project or the project grant."
_MANAGER = (
    "Besides `group.write` this takes for example `organization_manager.write`, and every permission of the roles."
)

OPERATIONS = (
    _GROUPS.list(
        ORGANIZATION / "groups",
        "Lists the groups of an organization.",
        lambda call: call.services.groups.page(call.entity.id, call.page),
        orders=GROUP_SORT_KEYS,
    ),
    _GROUPS.create(
        "add_group",
        ORGANIZATION / "groups",
        "Adds a group, without members and roles.",
        AddGroup,
        lambda call, command: call.services.groups.add(call.entity.id, command, principal=call.principal),
        location="/groups/{id}",
    ),
    _GROUPS.list(
        USER / "groups",
        "Lists the groups of a person by name.",
        _list_of_user,
        is_paged=False,
        name="list_user_groups",
    ),
    _GROUPS.list(
        SERVICE_USER / "groups",
        "Lists the groups of a service user by name.",
        _list_of_user,
        is_paged=False,
        name="list_service_user_groups",
    ),
    _GROUPS.show("Shows a group."),
    _GROUPS.update("Changes the name or the description of a group."),
    _GROUPS.deactivate("Deactivates a group: its members lose its roles until it is reactivated.", description=_TAKES),
    _GROUPS.reactivate("Reactivates a group.", description=_GIVES),
    _GROUPS.remove(
        "Removes a group: its members lose its roles.", verb="remove", permission=_WRITE, description=_TAKES
    ),
    _MEMBERS.list(
        GROUP / "members",
        "Lists the members of a group, newest first.",
        lambda call: call.services.group_members.page(call.entity.id, call.page),
        has_states=False,
    ),
    _MEMBERS.create(
        "add_group_member",
        GROUP / "members",
        "Puts a user of the organization into a group.",
        AddGroupMember,
        lambda call, command: call.services.group_members.add(call.entity.id, command, principal=call.principal),
        location="/group-members/{id}",
        description=_GIVES,
    ),
    _MEMBERS.get(GROUP_MEMBER, "Shows a membership.", lambda call: call.entity),
    _MEMBERS.change(
        GROUP_MEMBER,
        "Changes the end of a membership.",
        ChangeGroupMember,
        lambda call, command: call.services.group_members.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description=_GIVES,
    ),
    _MEMBERS.delete(
        "remove_group_member",
        GROUP_MEMBER,
        "Takes a user out of a group.",
        lambda call: call.services.group_members.remove(call.entity.id, principal=call.principal),
        permission=_WRITE,
        description=_TAKES,
    ),
    _GRANTS.list(
        GROUP / "grants",
        "Lists the project roles of a group, newest first.",
        lambda call: call.services.group_grants.page(call.entity.id, call.page),
        has_states=False,
    ),
    _GRANTS.create(
        "add_group_grant",
        GROUP / "grants",
        "Gives the members of a group roles of a project.",
        AddGroupGrant,
        lambda call, command: call.services.group_grants.add(call.entity.id, command, principal=call.principal),
        location="/group-grants/{id}",
        description=_USER_GRANT,
    ),
    _GRANTS.get(GROUP_GRANT, "Shows project roles of a group.", lambda call: call.entity),
    _GRANTS.change(
        GROUP_GRANT,
        "Replaces project roles of a group, or their end.",
        ChangeGroupGrant,
        lambda call, command: call.services.group_grants.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description=_USER_GRANT,
    ),
    _GRANTS.delete(
        "remove_group_grant",
        GROUP_GRANT,
        "Removes roles of a project from a group.",
        lambda call: call.services.group_grants.remove(call.entity.id, principal=call.principal),
        permission=_WRITE,
        description=_USER_GRANT,
    ),
    _MANAGERS.list(
        GROUP / "managers",
        "Lists the manager roles of a group, newest first.",
        lambda call: call.services.group_managers.page(call.entity.id, call.page),
        has_states=False,
    ),
    _MANAGERS.create(
        "add_group_manager",
        GROUP / "managers",
        "Gives the members of a group manager roles at a resource.",
        AddGroupManager,
        lambda call, command: call.services.group_managers.add(call.entity.id, command, principal=call.principal),
        location="/group-managers/{id}",
        description="The resource is the organization of the group, one of its projects, or a project grant that it "
        f"holds. {_MANAGER}",
    ),
    _MANAGERS.get(GROUP_MANAGER, "Shows manager roles of a group.", lambda call: call.entity),
    _MANAGERS.change(
        GROUP_MANAGER,
        "Replaces manager roles of a group, or their end.",
        ChangeGroupManager,
        lambda call, command: call.services.group_managers.change(
            call.entity.id, command, principal=call.principal, expected_version=call.expected_version
        ),
        description=_MANAGER,
    ),
    _MANAGERS.delete(
        "remove_group_manager",
        GROUP_MANAGER,
        "Removes manager roles at a resource from a group.",
        lambda call: call.services.group_managers.remove(call.entity.id, principal=call.principal),
        permission=_WRITE,
        description=_MANAGER,
    ),
)
