"""Changes to user grants."""

from identity.services.commands import Command
from identity.services.commands.field_types import RoleKey


class AddUserGrant(Command):
    """Give a user roles of a project; which project grant they derive from follows from the user's organization."""

    user_id: str
    project_id: str
    roles: frozenset[RoleKey] = frozenset()


class ChangeUserGrant(Command):
    """Replace the roles that the user was given."""

    roles: frozenset[RoleKey]
