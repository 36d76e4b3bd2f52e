"""Organizations: who owns users and projects."""

from identity.domain import organizations
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.storage.stores.organizations import ORDERS


@showing(organizations.Organization)
class Organization(Representation):
    """An organization. Its primary domain is part of every login name; it is proven or asserted."""


_ORGANIZATIONS = Resource(
    kind="organization",
    answers=Organization,
    path="/organizations/{organization}",
    list_path="/organizations",
    target=targets.organization,
    owner=targets.instance,
)

OPERATIONS = (
    _ORGANIZATIONS.lists(
        "Lists the organizations in which the caller manages anything, by name unless said otherwise.",
        lambda call: call.services.access.page_of_organizations(call.by, call.page),
        orders=ORDERS,
        permission=ANY_MANAGER,
    ),
    _ORGANIZATIONS.makes(
        "create",
        "Creates an organization.",
        CreateOrganization,
        lambda call: call.services.organizations.create(call.command, by=call.by),
        description="Without a primary domain one is derived from the name, and also while the given one waits for its"
        " proof: `list_domains` shows what to do. Whoever manages the instance asserts a domain by giving it.",
        permission="organization.create",
    ),
    _ORGANIZATIONS.shows("Shows an organization."),
    _ORGANIZATIONS.changes(
        "Changes an organization's name, primary domain and settings.",
        ChangeOrganization,
        description="With another primary domain all login names of the organization change. One that is not proven"
        " waits, and the former one goes on counting, unless the caller manages the instance and so asserts it.",
    ),
    _ORGANIZATIONS.deactivates(
        "Deactivates an organization.",
        description="Nobody of it signs in and its tokens are inactive until it is reactivated.",
        permission="organization.delete",
    ),
    _ORGANIZATIONS.reactivates("Reactivates an organization.", permission="organization.delete"),
    _ORGANIZATIONS.removes("Deletes an organization with everything in it."),
)
