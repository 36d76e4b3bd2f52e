"""Changes to organizations."""

from identity.domain.organizations import Organization
from identity.services.commands import Command
from identity.services.commands.derived import changing, making
from identity.services.commands.fields import Domain, Name


@making(Organization)
class CreateOrganization(Command):
    """Create an organization; the primary domain is derived from the name unless given.

    One that has to be proven waits, unless whoever gives it manages the instance: until then the derived one counts.
    ``registration`` says whether people may make an account of it for themselves.
    """

    name: Name
    primary_domain: Domain | None = None


@changing(Organization)
class ChangeOrganization(Command):
    """Change what is given."""

    primary_domain: Domain | None = None


class AddDomain(Command):
    """Ask for a domain, so that the organization can go by it once it is proven."""

    domain: Domain
