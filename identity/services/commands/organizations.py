"""Commands that change organizations."""

from identity.domain.organizations import Organization
from identity.services.commands import Command
from identity.services.commands.entity_fields import with_create_fields, with_update_fields
from identity.services.commands.field_types import Domain, Name


@with_create_fields(Organization)
class CreateOrganization(Command):
    """Create an organization; without a primary domain one is derived from the name.

    A domain that needs verification waits for it, unless the caller manages the instance; until then the derived
    one is used. ``registration`` says whether users may register themselves.
    """

    name: Name
    primary_domain: Domain | None = None


@with_update_fields(Organization)
class ChangeOrganization(Command):
    """Change the fields that are set."""

    primary_domain: Domain | None = None


class AddDomain(Command):
    """Request a domain; the organization can use it once it is verified."""

    domain: Domain
