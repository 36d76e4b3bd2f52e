"""Changes to projects, their roles and their grants."""

from identity.domain.projects import Project, ProjectRole
from identity.services.commands import Command
from identity.services.commands.derived import changing, making
from identity.services.commands.fields import Name, RoleKey


@making(Project)
class CreateProject(Command):
    """Create a project."""

    name: Name


@changing(Project)
class ChangeProject(Command):
    """Change what is given."""


@making(ProjectRole)
class AddProjectRole(Command):
    """Add a role to a project."""

    key: RoleKey


@changing(ProjectRole)
class ChangeProjectRole(Command):
    """Change what is given; the key stays."""


class AddProjectGrant(Command):
    """Grant a project, with some of its roles, to another organization."""

    organization_id: str
    roles: frozenset[RoleKey] = frozenset()


class ChangeProjectGrant(Command):
    """Replace the granted roles."""

    roles: frozenset[RoleKey]
