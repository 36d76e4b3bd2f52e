"""Organizations: who owns users and projects."""

from identity.domain import organizations
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.management.access_revocation import (
    REVOCATION_DESCRIPTION,
    RevokedAccessRepresentation,
    represent_revocation,
)
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import INSTANCE, ORGANIZATION
from identity.plugins.management.operation import EmptyCommand
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.storage.stores.organizations import ORGANIZATION_SORT_KEYS


@representation_fields(organizations.Organization)
class OrganizationRepresentation(Representation):
    """An organization. Its primary domain is part of every login name; it is verified or asserted."""


_ORGANIZATIONS = EntityApiResource(
    "organization",
    OrganizationRepresentation,
    at=ORGANIZATION,
    change_command=ChangeOrganization,
    service=lambda services: services.organizations,
)

OPERATIONS = (
    _ORGANIZATIONS.list(
        INSTANCE / "organizations",
        "Lists the organizations in which the caller has a manager role, by name by default.",
        lambda call: call.services.access_control.page_organizations(call.principal, call.page),
        orders=ORGANIZATION_SORT_KEYS,
        permission=ANY_MANAGER_PERMISSION,
    ),
    _ORGANIZATIONS.create(
        "create_organization",
        INSTANCE / "organizations",
        "Creates an organization.",
        CreateOrganization,
        lambda call, command: call.services.organizations.create(command, principal=call.principal),
        description="Without a primary domain, and until the given one is verified, a domain derived from "
        "the name is used: `list_domains` shows what to do. If the caller manages the "
        "instance, the given domain is asserted.",
        permission="organization.create",
    ),
    _ORGANIZATIONS.show("Shows an organization."),
    _ORGANIZATIONS.update(
        "Changes an organization's name, primary domain and settings.",
        description="Another primary domain changes all login names of the organization. An unverified "
        "domain waits while the current one stays active, unless the caller manages the "
        "instance and thereby asserts it.",
    ),
    _ORGANIZATIONS.deactivate(
        "Deactivates an organization.",
        description="Its users cannot sign in, and its tokens are inactive until it is reactivated.",
        permission="organization.delete",
    ),
    _ORGANIZATIONS.reactivate("Reactivates an organization.", permission="organization.delete"),
    _ORGANIZATIONS.action(
        "revoke_organization_access",
        ORGANIZATION / "revoke-access",
        "Ends all sessions and tokens of the users and applications of an organization at once.",
        EmptyCommand,
        lambda call, _: represent_revocation(
            call.services.access_revocations.revoke_organization(call.entity.id, principal=call.principal)
        ),
        description=f"{REVOCATION_DESCRIPTION} Users with more rights than the caller are left out and named; so is "
        "the caller.",
        representation=RevokedAccessRepresentation,
        permission="organization.delete",
    ),
    _ORGANIZATIONS.remove("Deletes an organization with everything in it."),
)
