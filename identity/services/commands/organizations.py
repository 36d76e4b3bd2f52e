"""Changes to organizations."""

from identity.domain.organizations import Organization
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import Domain, Name


@with_create_fields(Organization)
class CreateOrganization(Command):
    """Create an organization; the primary domain is derived from the name unless given.

    One that has to be proven waits, unless whoever gives it manages the instance: until then the derived one counts.
    ``registration`` says whether people may make an account of it for themselves.
    """

    name: Name
    primary_domain: Domain | None = None


@with_update_fields(Organization)
class ChangeOrganization(Command):
    """Change what is given."""

    primary_domain: Domain | None = None


class AddDomain(Command):
    """Ask for a domain, so that the organization can go by it once it is proven."""

    domain: Domain
