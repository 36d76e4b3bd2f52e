"""Changes to organizations."""

from identity.services.commands import Command
from identity.services.commands.fields import Domain, Name


class CreateOrganization(Command):
    """Create an organization; the primary domain is derived from the name unless given. ``registration`` says whether
    people may make an account of it for themselves."""

    name: Name
    primary_domain: Domain | None = None
    registration: bool = False


class ChangeOrganization(Command):
    """Change what is given."""

    name: Name | None = None
    primary_domain: Domain | None = None
    registration: bool | None = None
