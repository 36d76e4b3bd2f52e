"""Commands that change groups, their members and their roles."""

from identity.domain.group_mappings import GroupMapping
from identity.domain.groups import Group
from identity.domain.permissions import ManagerLevel
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import ClaimPath, ClaimValue, Name, RoleKey, Timestamp
from identity.services.commands.managers import ManagerRoleNames


@with_create_fields(Group)
class AddGroup(Command):
    """Add a group to an organization."""

    name: Name


@with_update_fields(Group)
class ChangeGroup(Command):
    """Change the fields that are set."""


class AddGroupMember(Command):
    """Put a user of the organization into a group."""

    user_id: str
    until: Timestamp | None = None


class ChangeGroupMember(Command):
    """Change the end of a membership; null for none."""

    until: Timestamp | None = None


class AddGroupGrant(Command):
    """Give the members of a group roles of a project."""

    project_id: str
    roles: frozenset[RoleKey] = frozenset()
    until: Timestamp | None = None


class ChangeGroupGrant(Command):
    """Replace the roles, or their end, as far as they are set."""

    roles: frozenset[RoleKey] | None = None
    until: Timestamp | None = None


class AddGroupManager(Command):
    """Give the members of a group manager roles at a resource."""

    level: ManagerLevel
    resource_id: str
    roles: ManagerRoleNames
    until: Timestamp | None = None


class ChangeGroupManager(Command):
    """Replace the roles, or their end, as far as they are set."""

    roles: ManagerRoleNames | None = None
    until: Timestamp | None = None


class AddGroupMapping(Command):
    """Make people with this value in a claim of the identity provider members of a group."""

    claim: ClaimPath
    value: ClaimValue
    group_id: str


@with_update_fields(GroupMapping)
class ChangeGroupMapping(Command):
    """Change the fields that are set. From then on the mapping acts with the rights of the caller."""
