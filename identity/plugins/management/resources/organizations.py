"""Organizations: who owns users and projects."""

from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.plugins.management.operation import PAGED, SEARCH, STATES, Call, Operation, shown, sorted_by
from identity.plugins.management.representation import State, Versioned
from identity.services.commands.organizations import ChangeOrganization, CreateOrganization
from identity.storage.paging import Page
from identity.storage.stores.organizations import ORDERS


class Organization(Versioned):
    """An organization. Its primary domain is part of every login name; it is proven or asserted."""

    name: str
    primary_domain: str
    registration: bool
    state: State


def _list(call: Call) -> Page[Organization]:
    return shown(Organization, call.services.access.page_of_organizations(call.by, call.page))


def _create(call: Call) -> Organization:
    return Organization.of(call.services.organizations.create(call.command, by=call.by))


def _show(call: Call) -> Organization:
    return Organization.of(call.value)


def _change(call: Call) -> Organization:
    organizations = call.services.organizations
    changed = organizations.change(call.value.id, call.command, by=call.by, expected_version=call.expected_version)
    return Organization.of(changed)


def _deactivate(call: Call) -> Organization:
    return Organization.of(call.services.organizations.deactivate(call.value.id, by=call.by))


def _reactivate(call: Call) -> Organization:
    return Organization.of(call.services.organizations.reactivate(call.value.id, by=call.by))


def _delete(call: Call) -> None:
    call.services.organizations.remove(call.value.id, by=call.by)


_PATH = "/organizations/{organization}"

OPERATIONS = (
    Operation(
        name="list_organizations",
        method="GET",
        path="/organizations",
        summary="Lists the organizations in which the caller manages anything, by name unless said otherwise.",
        permission=ANY_MANAGER,
        target=targets.instance,
        handle=_list,
        answers=Organization,
        many=True,
        parameters=(*PAGED, SEARCH, STATES, sorted_by(ORDERS)),
    ),
    Operation(
        name="create_organization",
        method="POST",
        path="/organizations",
        summary="Creates an organization.",
        description="Without a primary domain one is derived from the name, and also while the given one waits for its"
        " proof: `list_domains` shows what to do. Whoever manages the instance asserts a domain by giving it.",
        permission="organization.create",
        target=targets.instance,
        handle=_create,
        command=CreateOrganization,
        answers=Organization,
        location="/organizations/{id}",
    ),
    Operation(
        name="show_organization",
        method="GET",
        path=_PATH,
        summary="Shows an organization.",
        permission="organization.read",
        target=targets.organization,
        handle=_show,
        answers=Organization,
    ),
    Operation(
        name="change_organization",
        method="PATCH",
        path=_PATH,
        summary="Changes an organization's name, primary domain and settings.",
        description="With another primary domain all login names of the organization change. One that is not proven"
        " waits, and the former one goes on counting, unless the caller manages the instance and so asserts it.",
        permission="organization.write",
        target=targets.organization,
        handle=_change,
        command=ChangeOrganization,
        answers=Organization,
    ),
    Operation(
        name="deactivate_organization",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates an organization.",
        description="Nobody of it signs in and its tokens are inactive until it is reactivated.",
        permission="organization.delete",
        target=targets.organization,
        handle=_deactivate,
        answers=Organization,
    ),
    Operation(
        name="reactivate_organization",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates an organization.",
        permission="organization.delete",
        target=targets.organization,
        handle=_reactivate,
        answers=Organization,
    ),
    Operation(
        name="delete_organization",
        method="DELETE",
        path=_PATH,
        summary="Deletes an organization with everything in it.",
        permission="organization.delete",
        target=targets.organization,
        handle=_delete,
    ),
)
