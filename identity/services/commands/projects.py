"""Changes to projects, their roles and their grants."""

from typing import Annotated

from pydantic import AfterValidator

from identity.domain.words import say
from identity.services.commands import Command
from identity.services.commands.fields import Name, OptionalText


def _role_key(key: str) -> str:
    if not key or len(key) > 100 or any(character.isspace() or not character.isprintable() for character in key):
        raise ValueError(say("Use 1 to 100 printable characters without spaces."))
    if key in (".", ".."):
        # Browsers take such a step out of an address.
        raise ValueError(say("Use another key: this one cannot stand in an address."))
    return key


RoleKey = Annotated[str, AfterValidator(_role_key)]


class CreateProject(Command):
    """Create a project."""

    name: Name
    assert_roles: bool = False
    check_roles: bool = False


class ChangeProject(Command):
    """Change what is given."""

    name: Name | None = None
    assert_roles: bool | None = None
    check_roles: bool | None = None


class AddProjectRole(Command):
    """Add a role to a project."""

    key: RoleKey
    display_name: Name
    group: OptionalText = ""


class ChangeProjectRole(Command):
    """Change what is given; the key stays."""

    display_name: Name | None = None
    group: OptionalText | None = None


class AddProjectGrant(Command):
    """Grant a project, with some of its roles, to another organization."""

    organization_id: str
    roles: frozenset[RoleKey] = frozenset()


class ChangeProjectGrant(Command):
    """Replace the granted roles."""

    roles: frozenset[RoleKey]
