"""Commands that change projects, their roles and their grants."""

from identity.domain.projects import Project, ProjectRole
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import Name, RoleKey, Timestamp


@with_create_fields(Project)
class CreateProject(Command):
    """Create a project."""

    name: Name


@with_update_fields(Project)
class ChangeProject(Command):
    """Change the fields that are set."""


@with_create_fields(ProjectRole)
class AddProjectRole(Command):
    """Add a role to a project."""

    key: RoleKey


@with_update_fields(ProjectRole)
class ChangeProjectRole(Command):
    """Change the fields that are set; the key stays."""


class AddProjectGrant(Command):
    """Grant a project, with some of its roles, to another organization."""

    organization_id: str
    roles: frozenset[RoleKey] = frozenset()
    until: Timestamp | None = None


class ChangeProjectGrant(Command):
    """Replace the granted roles, or the end, as far as they are set."""

    roles: frozenset[RoleKey] | None = None
    until: Timestamp | None = None
