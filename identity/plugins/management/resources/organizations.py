"""Organizations: who owns users and projects."""

from identity.domain import organizations
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.storage.stores.organizations import ORGANIZATION_SORT_KEYS


@representation_fields(organizations.Organization)
class OrganizationRepresentation(Representation):
    """An organization. Its primary domain is part of every login name; it is proven or asserted."""


_ORGANIZATIONS = ApiResource(
    kind="organization",
    representation=OrganizationRepresentation,
    path="/organizations/{organization}",
    list_path="/organizations",
    context_factory=route_contexts.organization_context,
    parent_context_factory=route_contexts.instance_context,
)

OPERATIONS = (
    _ORGANIZATIONS.list_operation(
        "Lists the organizations in which the caller manages anything, by name unless said otherwise.",
        lambda call: call.services.access_control.page_organizations(call.principal, call.page),
        orders=ORGANIZATION_SORT_KEYS,
        permission=ANY_MANAGER_PERMISSION,
    ),
    _ORGANIZATIONS.create_operation(
        "create",
        "Creates an organization.",
        CreateOrganization,
        lambda call: call.services.organizations.create(call.command, principal=call.principal),
        description="Without a primary domain one is derived from the name, and also while the given one waits for its"
        " proof: `list_domains` shows what to do. Whoever manages the instance asserts a domain by giving it.",
        permission="organization.create",
    ),
    _ORGANIZATIONS.get_operation("Shows an organization."),
    _ORGANIZATIONS.update_operation(
        "Changes an organization's name, primary domain and settings.",
        ChangeOrganization,
        description="With another primary domain all login names of the organization change. One that is not proven"
        " waits, and the former one goes on counting, unless the caller manages the instance and so asserts it.",
    ),
    _ORGANIZATIONS.deactivate_operation(
        "Deactivates an organization.",
        description="Nobody of it signs in and its tokens are inactive until it is reactivated.",
        permission="organization.delete",
    ),
    _ORGANIZATIONS.reactivate_operation("Reactivates an organization.", permission="organization.delete"),
    _ORGANIZATIONS.delete_operation("Deletes an organization with everything in it."),
)
