"""Changes to organizations."""

from identity.services.commands import Command
from identity.services.commands.fields import Domain, Name


class CreateOrganization(Command):
    """Create an organization; the primary domain is derived from the name unless given."""

    name: Name
    primary_domain: Domain | None = None


class ChangeOrganization(Command):
    """Change what is given."""

    name: Name | None = None
    primary_domain: Domain | None = None
