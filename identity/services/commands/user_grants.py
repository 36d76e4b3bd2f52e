"""Commands that change user grants."""

from identity.services.commands import Command
from identity.services.commands.field_types import RoleKey, Timestamp


class AddUserGrant(Command):
    """Grant a user roles of a project; the user's organization determines the project grant that they derive from."""

    user_id: str
    project_id: str
    roles: frozenset[RoleKey] = frozenset()
    until: Timestamp | None = None


class ChangeUserGrant(Command):
    """Replace the user's roles, or their end, as far as they are set."""

    roles: frozenset[RoleKey] | None = None
    until: Timestamp | None = None
